internal import TidemarkEngine

/// The replicas that a page names, in the order of their first use, and the last sequence of each.
struct ReplicaTable {
  private(set) var replicas: [ReplicaID] = []
  private var indices: [ReplicaID: Int] = [:]
  private var sequences: [UInt64] = []
  /// Which one wrote the entry before; 0 at first.
  private(set) var current = 0
  /// How many of them were used so far.
  private var used = 0

  /// - Returns: whether it was not there yet.
  mutating func insert(_ replica: ReplicaID) -> Bool {
    if let last = replicas.last, last == replica { return false }
    guard indices[replica] == nil else { return false }
    indices[replica] = replicas.count
    replicas.append(replica)
    sequences.append(0)
    return true
  }

  /// Makes a replica the current one.
  /// - Returns: whether it was not before.
  mutating func select(_ replica: ReplicaID) -> Bool {
    if replicas[current] == replica { return false }
    current = indices[replica] ?? current
    return true
  }

  /// Makes another one the current one, if they come in order.
  mutating func select(index: Int) throws(FormatError) {
    guard index < replicas.count, index != current, index <= used else {
      throw FormatError("replicas are not in the order of their first use")
    }
    current = index
  }

  /// Notes that the current one was used.
  mutating func use() throws(FormatError) -> ReplicaID {
    guard current < replicas.count else { throw FormatError("an entry without replica") }
    used = max(used, current + 1)
    return replicas[current]
  }

  /// Whether every one was used.
  var isUsedUp: Bool { used == replicas.count }

  /// The last sequence of the current one.
  var sequence: UInt64 {
    get { sequences[current] }
    set { sequences[current] = newValue }
  }
}
