internal import Tidemark
internal import TidemarkEngine

/// How much of a day's bytes is used: a record in the log, written when a share of the day's bytes
/// is begun, and with all of the share in it. So a restart gives nothing back, and there are few
/// records. Its bytes are in `HowReplicationWorks.md`.
struct BudgetLedger: Sendable, Hashable {
  static let dayMilliseconds: UInt64 = 86_400_000
  private static let shares = 32
  private static let version: UInt8 = 1

  private(set) var start: UInt64 = 0
  /// A clock that has gone back counts by itself from there: it must neither make anybody wait
  /// until it is where it was, nor begin a day when it jumps there again.
  private(set) var back: UInt64 = 0
  private(set) var used: UInt64 = 0

  /// Begins another day if this one is over.
  /// - Returns: whether anything has changed that must be written down.
  mutating func renew(_ now: UInt64) -> Bool {
    guard start > 0 else { return false }
    if now >= start {
      guard now - start >= Self.dayMilliseconds else {
        // It is where it was: going back once more is no day over.
        guard back != 0 else { return false }
        back = 0
        return true
      }
    } else if back == 0 || now < back {
      back = now
      return true
    } else {
      guard now - back >= Self.dayMilliseconds else { return false }
    }
    // Where it goes back to before this, it counts by itself again.
    (start, back, used) = (now, 0, 0)
    return true
  }

  /// When the day ends, by a clock that says `now`.
  func end(_ now: UInt64) -> UInt64 {
    // No day has begun as long as nothing was counted.
    let begun = start == 0 ? now : now >= start ? start : max(back, 1)
    return begun + Self.dayMilliseconds
  }

  mutating func charge(_ bytes: Int, at now: UInt64) {
    guard bytes > 0 else { return }
    if start == 0 { start = max(1, now) }
    used += min(UInt64(bytes), UInt64.max / 2 - used)
  }

  func remaining(of bytesPerDay: Int) -> Int {
    max(0, bytesPerDay) - min(Int(clamping: used), max(0, bytesPerDay))
  }

  /// The same with the whole of the share that is begun.
  func roundedUp(_ bytesPerDay: Int) -> BudgetLedger {
    let share = UInt64(max(1, bytesPerDay / Self.shares))
    var rounded = self
    rounded.used = (used + share - 1) / share * share
    return rounded
  }

  var encoded: [UInt8] {
    var writer = ByteWriter()
    writer.u8(Self.version)
    writer.varint(start)
    writer.varint(back)
    writer.varint(used)
    return writer.bytes
  }
}

extension BudgetLedger {
  init(decoding bytes: RawSpan) throws(FormatError) {
    var reader = ByteReader(bytes)
    try reader.version(Self.version)
    start = try reader.varint()
    back = try reader.varint()
    used = min(try reader.varint(), UInt64.max / 4)
    guard start < UInt64.max / 2, back < UInt64.max / 2 else {
      throw FormatError("a day far away")
    }
  }
}
