public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The share of the network that a replicator may use.
///
/// ```swift
/// var configuration = Replicator.Configuration()
/// configuration.budget = SyncBudget(
///   bytesPerDay: 20 << 20, urgentPriority: 1,
///   network: network, onExpensive: .priority(atLeast: 1), onConstrained: .nothing)
/// ```
/// **What is counted**: of each batch that is sent, also when it is sent again, and of each page
/// that is taken, the bytes of keys, values, labels and hashes and 64 for each entry, before
/// compression. Hellos, verdicts and sums are not counted.
///
/// **When the day's bytes are used up**, or where only entries of some priority go, the replicator
/// still says hello and takes verdicts on what it had sent, and sends the entries whose turn it is,
/// with what they are in conflict with; it takes nothing else, asks for nothing, and compares
/// nothing. A batch that was formed before is sent first when something urgent waits behind it. The
/// last batch and the last page of a day may go beyond it by one entry, or by one batch that is
/// sent again.
///
/// **A day** begins with the first byte that is counted, or when the one before is over, and has 24
/// hours by the store's clock. What was used is in the store's log, under the replicator's name: a
/// restart gives nothing back, and costs a thirty-second part of the day's bytes at most. A clock
/// that goes back makes nobody wait for more than 24 hours, and gives nothing when it comes
/// forward again.
public struct SyncBudget: Sendable {
  /// Which bytes are counted.
  public enum Counted: Sendable, Hashable {
    /// The bytes that are sent.
    case sent
    /// The bytes that are sent and those that are taken.
    case both
  }

  /// The traffic over a network of some condition.
  public enum Rule: Sendable, Hashable {
    /// Everything.
    case everything
    /// Entries of this priority and above, and nothing is taken.
    case priority(atLeast: Int)
    /// Nothing: no call is made.
    case nothing
  }

  /// Most bytes in a day; nil for any number.
  public var bytesPerDay: Int?
  /// Which bytes are counted.
  public var counted: Counted
  /// Entries of this priority and above go although the day's bytes are used up, and are counted;
  /// nil for none.
  public var urgentPriority: Int?
  /// Says what the network is like; nil where nobody knows, and everything goes.
  public var network: NetworkSignal?
  /// The traffic over an expensive network.
  public var onExpensive: Rule
  /// The traffic over a constrained network.
  public var onConstrained: Rule

  /// A budget.
  public init(
    bytesPerDay: Int? = nil, counted: Counted = .both, urgentPriority: Int? = nil,
    network: NetworkSignal? = nil, onExpensive: Rule = .everything,
    onConstrained: Rule = .everything
  ) {
    self.bytesPerDay = bytesPerDay
    self.counted = counted
    self.urgentPriority = urgentPriority
    self.network = network
    self.onExpensive = onExpensive
    self.onConstrained = onConstrained
  }
}

/// Why a replicator holds back what it could send or take. It goes on by itself.
public enum HoldReason: Sendable, Hashable {
  /// The day's bytes are used up; the next day begins then.
  case budget(until: Timestamp)
  /// The network is like this, and the budget lets nothing, or nothing more, over it.
  case network(NetworkCondition)
}

extension SyncBudget {
  /// The calls that are allowed over a network of a condition.
  /// - Parameters:
  ///   - remaining: bytes that are left of the day.
  ///   - end: when the day ends.
  /// - Returns: nil for the calls where there are to be none; and why not all are allowed.
  func permit(
    on condition: NetworkCondition, remaining: Int?, until end: Timestamp
  ) -> (gate: SyncGate?, reason: HoldReason?) {
    var gate = SyncGate()
    var reason: HoldReason?
    let rule: Rule =
      switch condition {
      case .unrestricted: .everything
      case .expensive: onExpensive
      case .constrained: onConstrained
      case .offline: .nothing
      }
    switch rule {
    case .everything: break
    case .nothing: return (nil, .network(condition))
    case .priority(let least):
      gate = SyncGate(isNarrow: true, leastPriority: least)
      reason = .network(condition)
    }
    guard let remaining else { return (gate, reason) }
    if remaining > 0 {
      gate.bytes = remaining
      return (gate, reason)
    }
    let least = urgentPriority.map { max($0, gate.leastPriority ?? $0) }
    return (SyncGate(isNarrow: true, leastPriority: least), reason ?? .budget(until: end))
  }
}

/// How much of a day's bytes is used: a record in the log, written when a share of the day's bytes
/// is begun, and with all of the share in it. So a restart gives nothing back, and there are few
/// records. Its bytes are in `HowReplicationWorks.md`.
struct BudgetLedger: Sendable, Hashable {
  static let dayMilliseconds: UInt64 = 86_400_000
  private static let shares = 32

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
}

extension BudgetLedger: StoredRecord {
  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.version(1)
    try record.varint(&start)
    try record.varint(&back)
    try record.varint(&used)
    if record.isReading { used = min(used, UInt64.max / 4) }
    guard start < UInt64.max / 2, back < UInt64.max / 2 else {
      throw FormatError("a day far away")
    }
  }
}
