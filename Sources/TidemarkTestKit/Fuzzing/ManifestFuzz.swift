internal import TidemarkEngine

/// Decodes a MANIFEST, encodes what that gave and decodes it again. Options: bit 1, the input
/// lacks the zeros at the end of the file; bit 2, the length of the fields is made to fit.
enum ManifestFuzz {
  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    var bytes = input.body
    if input.flag(1) {
      let missing = Manifest.storedBytes(bytes.count) - bytes.count
      bytes.append(contentsOf: repeatElement(0, count: missing))
    }
    if input.repairs { ChecksumRepair.manifest(&bytes, fits: input.flag(2)) }
    guard let manifest = try? Manifest(decoding: bytes.rawSpan) else { return }
    guard let again = try? Manifest(decoding: manifest.encoded().rawSpan) else {
      throw FuzzFinding("a manifest cannot be decoded after it was encoded again")
    }
    guard again == manifest else { throw FuzzFinding("a manifest changes when encoded again") }
  }

  static func seeds() -> [[UInt8]] {
    [manifest(segments: 0), manifest(segments: 1), manifest(segments: 4)].map { manifest in
      let bytes = manifest.encoded()
      return [7] + bytes.prefix(Int(bytes.word64(24)))
    }
  }

  private static func manifest(segments: Int) -> Manifest {
    var manifest = Manifest(
      storeID: Array(1...16), replicaID: Array(17...32), bootID: Array(33...48),
      hashSeed: 0x1234_5678_9abc_def0)
    manifest.generation = 300
    manifest.isClosedCleanly = segments > 1
    manifest.latestCommitTime = 0x19b_0000_0000_0000
    manifest.lastSequence = UInt64(segments) * 100
    manifest.nextSegmentID = UInt64(segments) + 1
    if segments > 1 {
      manifest.retention = Retention(ageSeconds: 86_400, bytes: 1 << 30, versionsPerKey: 3)
      manifest.historyFrom = 50
      manifest.historyTime = Timestamp(seconds: 1_767_225_600, nanoseconds: 5)
      manifest.droppedThrough = 20
      manifest.nextRunID = 9
      manifest.runs = [
        .init(id: 7, sequence: 150, length: 8192), .init(id: 8, sequence: 390, length: 70_000),
      ]
      manifest.damage = [
        .init(
          state: .accepted, segmentID: 2, offset: 8192, length: 400, firstSequence: 110,
          lastSequence: 112, reason: Array("gone".utf8))
      ]
      manifest.epochs = [
        .init(epoch: 0xfeed, firstSequence: 1), .init(epoch: 0xbeef, firstSequence: 220),
      ]
    }
    for number in 0..<segments {
      var row = Manifest.Segment(
        id: UInt64(number) + 1, state: number == segments - 1 ? .active : .sealed,
        kind: number == 0 && segments > 1 ? .compacted : .appended,
        salt: 0xabcd_0000 + UInt32(number), firstSequence: UInt64(number) * 100 + 1)
      row.lastSequence = row.state == .active ? row.firstSequence - 1 : UInt64(number + 1) * 100
      if row.state == .sealed {
        row.length = 12_345
        row.entryCount = 100
        row.rawBytes = 6000
        row.chain = 0xdead_beef
        row.latestTime = Timestamp(seconds: 1_767_225_600)
      }
      manifest.segments.append(row)
    }
    return manifest
  }
}
