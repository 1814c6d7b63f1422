public import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Limits how many bytes a replicator transfers in a day, and what it sends over which network.
///
/// ```swift
/// var configuration = Replicator.Configuration()
/// configuration.budget = SyncBudget(
///   bytesPerDay: 20 << 20, urgentPriority: 1,
///   network: network, onExpensive: .priority(atLeast: 1), onConstrained: .nothing)
/// ```
/// **What is counted**: of each batch that is sent or resent, and of each page that is pulled, the
/// bytes of keys, values, labels and hashes and 64 for each entry, before compression. Hellos,
/// verdicts and digests are not counted.
///
/// **When the day's bytes are used up**, or only entries of some priority are allowed, the
/// replicator still makes hellos, gets verdicts on what it sent, and sends the allowed entries,
/// with the remote states for their conflicts; it pulls, fetches and compares nothing else. A batch
/// that was formed before is sent first if an urgent entry waits for it. The last batch and the
/// last page of a day may exceed the bytes by one entry, or by one batch that is resent.
///
/// **A day** begins with the first call after the previous day's end, the first of all with the
/// first byte that is counted, and has 24 hours by the store's clock. The use is saved in the
/// store's log, under the replicator's name: a restart does not reset it, and costs a thirty-second
/// part of the day's bytes at most. After a clock was set back no wait is longer than 24 hours, and
/// setting it forward again within them begins no day.
public struct SyncBudget: Sendable {
  /// Decides which transferred bytes count against ``bytesPerDay``.
  public enum Counted: Sendable, Hashable {
    /// Only the bytes that the replicator sends count; pulled pages are free.
    case sent
    /// The bytes that the replicator sends and those that it pulls both count.
    case both
  }

  /// Says what a replicator may transfer while the network is expensive or constrained.
  public enum Rule: Sendable, Hashable {
    /// The network's condition restricts nothing: the replicator pushes, pulls and fetches.
    case everything
    /// The replicator only sends entries whose priority is `atLeast` or higher. It pulls, fetches
    /// and compares nothing.
    case priority(atLeast: Int)
    /// The replicator makes no call at all while the network has the condition.
    case nothing
  }

  /// The most bytes that the replicator transfers in 24 hours; nil sets no limit. ``counted``
  /// decides which bytes count.
  public var bytesPerDay: Int?
  /// Whether only sent bytes count against ``bytesPerDay``, or sent and pulled ones. The default is
  /// ``Counted/both``.
  public var counted: Counted
  /// The lowest priority of an urgent entry. The replicator sends urgent entries even when the
  /// day's bytes are used up, and counts them. Nil makes no entry urgent.
  public var urgentPriority: Int?
  /// The source of the network's condition. With nil the replicator does not know the condition and
  /// allows every transfer.
  public var network: NetworkSignal?
  /// What the replicator may transfer while ``network`` says that the network is expensive, such as
  /// a cellular one. The default allows everything.
  public var onExpensive: Rule
  /// What the replicator may transfer while ``network`` says that the network is constrained, for
  /// example since the user asked to save data. The default allows everything.
  public var onConstrained: Rule

  /// Creates a budget for ``Replicator/Configuration/budget``; without arguments it limits nothing.
  /// - Parameters:
  ///   - bytesPerDay: the most bytes in 24 hours; nil for no limit.
  ///   - counted: whether pulled bytes count as well as sent ones.
  ///   - urgentPriority: entries of this priority and above are sent even when the day's bytes are
  ///     used up; nil for none.
  ///   - network: the source of the network's condition; nil if it is unknown.
  ///   - onExpensive: what may be transferred over an expensive network.
  ///   - onConstrained: what may be transferred over a constrained network.
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

/// Why a ``SyncBudget`` holds transfers back. The replicator continues by itself when the reason is
/// gone.
@nonexhaustive
public enum HoldReason: Sendable, Hashable {
  /// The day's bytes are used up. The next day begins at the time `until`.
  case budget(until: Timestamp)
  /// The network has this condition, and the budget's rule for it does not allow the waiting
  /// transfers.
  case network(NetworkCondition)
}

extension SyncBudget {
  /// The calls that are allowed over a network of a condition.
  /// - Parameters:
  ///   - remaining: the bytes that are left of the day; nil for no limit.
  ///   - end: when the day ends.
  /// - Returns: the allowed calls, nil for none; and why not all are allowed.
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

/// The use of a day's bytes: saved with the peer's status when a further thirty-second part is
/// begun, which it counts as a whole. So a restart does not reset the use, and records are few.
struct BudgetLedger: Sendable, Hashable {
  static let dayMilliseconds: UInt64 = 86_400_000
  private static let shares = 32

  private(set) var start: UInt64 = 0
  /// The clock's time when it was first seen before `start`; 0 if not. The day then has 24 hours
  /// from here: waiting for the old time could take years, and its return must not begin a day.
  private(set) var back: UInt64 = 0
  private(set) var used: UInt64 = 0

  /// Begins another day if this one is over, and notes a clock that was set back.
  /// - Returns: whether the ledger has changed and must be saved.
  mutating func renew(_ now: UInt64) -> Bool {
    guard start > 0 else { return false }
    if now >= start {
      guard now - start >= Self.dayMilliseconds else {
        // The clock is past `start` again; another set-back is noted anew.
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
    // A set-back to before this start is noted again.
    (start, back, used) = (now, 0, 0)
    return true
  }

  /// When the day ends, by a clock that says `now`.
  func end(_ now: UInt64) -> UInt64 {
    // Before the first byte is counted no day has begun.
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

  /// The ledger to save: the use rounded up to whole shares.
  func roundedUp(_ bytesPerDay: Int) -> BudgetLedger {
    let share = UInt64(max(1, bytesPerDay / Self.shares))
    var rounded = self
    rounded.used = (used + share - 1) / share * share
    return rounded
  }
}

extension BudgetLedger: StoredRecord {
  mutating func code(_ record: inout FrameCursor) throws(FormatError) {
    try record.varint(&start)
    try record.varint(&back)
    try record.varint(&used)
    if record.isReading { used = min(used, UInt64.max / 4) }
    guard start < UInt64.max / 2, back < UInt64.max / 2 else {
      throw FormatError("a day far away")
    }
  }
}
