internal import TidemarkEngine

/// The replica ids in a page's entries, in the order of their first use. Entries are coded with an
/// index into this table, and sequences as differences from the replica's last one.
struct ReplicaTable {
  private(set) var replicas: [ReplicaID] = []
  private var indices: [ReplicaID: Int] = [:]
  private var sequences: [UInt64] = []
  /// The index of the last entry's replica; 0 at first.
  private(set) var current = 0
  /// How many replicas were used so far.
  private var used = 0

  /// - Returns: whether it was added, as the table did not have it.
  mutating func insert(_ replica: ReplicaID) -> Bool {
    if let last = replicas.last, last == replica { return false }
    guard indices[replica] == nil else { return false }
    indices[replica] = replicas.count
    replicas.append(replica)
    sequences.append(0)
    return true
  }

  /// Makes a replica the current one.
  /// - Returns: whether that was another one before.
  mutating func select(_ replica: ReplicaID) -> Bool {
    if replicas[current] == replica { return false }
    current = indices[replica] ?? current
    return true
  }

  /// Makes another replica the current one; a first use must be that of the next in the table.
  mutating func select(index: Int) throws(FormatError) {
    guard index < replicas.count, index != current, index <= used else {
      throw FormatError("replicas are not in the order of their first use")
    }
    current = index
  }

  /// Returns the current replica, for an entry, and marks it as used.
  mutating func use() throws(FormatError) -> ReplicaID {
    guard current < replicas.count else { throw FormatError("an entry without replica") }
    used = max(used, current + 1)
    return replicas[current]
  }

  /// Whether every replica was used, as only those may be in the table.
  var isUsedUp: Bool { used == replicas.count }

  /// The last sequence of the current replica.
  var sequence: UInt64 {
    get { sequences[current] }
    set { sequences[current] = newValue }
  }
}
