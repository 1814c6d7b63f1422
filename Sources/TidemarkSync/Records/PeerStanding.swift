internal import TidemarkEngine

/// The facts about a peer that a step writes down: how far the store has come with it, the batch
/// under way, the newest positions, and the pin of what is kept for it. They are in the record of
/// the pin, so that an edit that is sent by itself costs one record; compaction reads the first
/// part only. Its bytes are in `HowReplicationWorks.md`.
struct PeerStanding {
  var progress: PeerProgress
  var basis: PeerProgress.Basis
  var formed: FormedBatch?
  /// The newest runs of the settled ones.
  var tail: [SettledRun]
  var settled = SettledRuns()
  var pin: RetentionPin?

  /// The value of the step's record.
  static func encode(
    _ progress: PeerProgress, _ basis: PeerProgress.Basis, _ formed: FormedBatch?,
    _ tail: [SettledRun], _ pin: RetentionPin
  ) -> [UInt8] {
    var writer = ByteWriter()
    let epoch = basis.epoch
    writer.blob(progress.encodedStep(basis))
    writer.blob(formed?.encoded(progress, epoch) ?? [])
    writer.blob(SettledRunsCoding.encode(tail[...], epoch: epoch))
    return pin.record(before: writer.bytes)
  }

  /// Reads what stands in the step's record behind the pin.
  static func decode(_ value: RawSpan, basis: RawSpan) throws(FormatError) -> PeerStanding {
    var reader = ByteReader(value)
    let step = try reader.blob()
    let (progress, basis) = try PeerProgress.decode(basis: basis, step: step.rawSpan)
    let epoch = basis.epoch
    let bytes = try reader.blob()
    let formed = bytes.isEmpty ? nil : try FormedBatch(decoding: bytes.rawSpan, progress, epoch)
    let tail = try SettledRunsCoding.decode(try reader.blob(), epoch: epoch)
    guard reader.remaining == 0 else { throw FormatError("bytes after a peer's step") }
    return PeerStanding(progress: progress, basis: basis, formed: formed, tail: tail)
  }
}
