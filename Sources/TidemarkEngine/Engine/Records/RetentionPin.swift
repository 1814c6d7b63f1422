/// Keeps history from one sequence on for somebody who has yet to see it: a peer that has not
/// acknowledged what was written, or readers of a feed. It is a record in the log, so that a
/// compaction in any process honours it.
///
/// ```
/// u8      version, 1
/// varint  the first sequence that must stay, with what its key was before
/// u64     milliseconds since 1970 of the last sign of life
/// ```
package struct RetentionPin: Sendable, Hashable {
  private static let version: UInt8 = 1
  /// Who gives no sign of life for so long counts as gone: 90 days.
  package static let millisecondsToLive: UInt64 = 90 * 86_400_000

  /// The first sequence that must stay.
  package var first: UInt64
  /// Milliseconds since 1970.
  package var renewed: UInt64

  package init(first: UInt64, renewed: UInt64) {
    self.first = first
    self.renewed = renewed
  }

  package var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.varint(first)
    writer.u64(renewed)
    return writer.bytes
  }

  package init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    guard try reader.u8() == Self.version else {
      throw FormatError("unknown version of a pin", isNewer: true)
    }
    first = try reader.varint()
    renewed = try reader.u64()
    guard reader.remaining == 0 else { throw FormatError("bytes behind a pin") }
  }
}

extension Engine {
  /// The last sequence of which nobody needs the history: the records of type `pin` say so.
  ///
  /// A pin that cannot be read, or that a later version wrote, keeps everything.
  func pinnedFloor() throws(TidemarkError) -> UInt64 {
    let table = try RecordTable(self)
    let now = UInt64(clamping: max(0, environment.clock.now().milliseconds))
    var floor = UInt64.max
    for key in table.keys(of: .pin) {
      guard let value = try table.value(of: .pin, key: key) else { continue }
      guard let pin = try? RetentionPin(decoding: value.rawSpan) else { return 0 }
      guard pin.renewed > now || now - pin.renewed < RetentionPin.millisecondsToLive else {
        continue
      }
      floor = min(floor, max(pin.first, 1) - 1)
    }
    return floor
  }
}
