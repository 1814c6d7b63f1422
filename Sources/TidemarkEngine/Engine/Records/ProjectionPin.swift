/// How far a projection has read the log, so that compaction in any process keeps the rest for it.
/// A *projection* reads the entries of the log in order and keeps what it works out of them in a
/// checkpoint: the value of a key of the library's own. These bytes are the checkpoint's beginning:
/// ```
/// u8   version, 1
/// u64  the last sequence that it has read
/// u64  the epoch of that sequence
/// u64  milliseconds since 1970 of the checkpoint
/// ```
/// The projection lays out the rest as it likes.
package struct ProjectionPin: Sendable, Hashable {
  /// The keys of checkpoints begin with this; the projection's name follows.
  package static let keys = DerivedKeys.prefix + [UInt8(ascii: "p")]
  private static let version: UInt8 = 1
  package static let byteCount = 25

  package var sequence: UInt64
  package var epoch: UInt64
  package var time: UInt64

  package init(sequence: UInt64, epoch: UInt64, time: UInt64) {
    self.sequence = sequence
    self.epoch = epoch
    self.time = time
  }

  package init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    try reader.version(Self.version)
    sequence = try reader.u64()
    epoch = try reader.u64()
    time = try reader.u64()
  }

  /// Whether the checkpoint is so old that nothing is kept for the projection any more.
  /// - Parameter now: milliseconds since 1970.
  package func isExpired(at now: UInt64) -> Bool {
    now > time && now - time >= RetentionPin.millisecondsToLive
  }

  package func encode(into writer: inout ByteWriter) {
    writer.u8(Self.version)
    writer.u64(sequence)
    writer.u64(epoch)
    writer.u64(time)
  }

  /// The projections of a store and how far they have read; nil for a pin that cannot be decoded.
  package static func all(
    in reader: Reader
  ) throws(TidemarkError) -> [(name: [UInt8], pin: ProjectionPin?)] {
    var found: [(name: [UInt8], pin: ProjectionPin?)] = []
    for key in try reader.firstKeys(withPrefix: keys, limit: .max) {
      let pin = try reader.withValue(forKey: key.rawSpan) { (value, _) in
        try? ProjectionPin(decoding: value)
      }
      found.append((Array(key[keys.count...]), pin ?? nil))
    }
    return found
  }

  /// The sequence up to which all projections have read, nil without projections: a compaction
  /// keeps all versions above it.
  /// An expired projection holds nothing back: it reads the store anew when it comes back.
  static func floor(in reader: Reader) throws(TidemarkError) -> UInt64? {
    if PlantedBug.isOn(.projectionUnpinned) { return nil }  // A bug that tests switch on.
    let now = reader.millisecondsNow
    var floor: UInt64?
    for (_, pin) in try all(in: reader) {
      // A later version of the library may have written this pin, so everything is kept.
      guard let pin else { return 0 }
      if pin.isExpired(at: now) { continue }
      floor = min(floor ?? .max, pin.sequence)
    }
    return floor
  }
}
