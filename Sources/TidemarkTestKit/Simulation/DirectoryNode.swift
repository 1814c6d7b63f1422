/// A directory on a simulated disk: the names that a process sees and those that would survive.
struct DirectoryNode: Sendable {
  /// A name that was given or taken away and not synced.
  struct Change: Sendable {
    var stamp: Int
    var name: String
    /// The node that got the name; nil where it was removed.
    var node: Int?
  }

  /// The names that a process sees.
  private(set) var visible: [String: Int] = [:]
  /// The names that a power cut cannot take.
  private(set) var durable: [String: Int] = [:]
  /// In order, the oldest first.
  private(set) var pending: [Change] = []

  /// All nodes that some survival of the changes would show.
  var reachable: [Int] {
    Array(visible.values) + durable.values + pending.compactMap(\.node)
  }

  /// The names in byte order.
  var names: [String] {
    visible.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  mutating func set(_ name: String, to node: Int?, stamp: Int) {
    visible[name] = node
    pending.append(Change(stamp: stamp, name: name, node: node))
  }

  /// Makes all names durable.
  mutating func sync() {
    durable = visible
    pending = []
  }

  /// Makes one name durable as it stands.
  mutating func sync(_ name: String) {
    durable[name] = visible[name]
    pending.removeAll { $0.name == name }
  }

  /// The names that the machine finds after a power cut become the directory.
  mutating func settle(_ decider: inout SurvivalDecider) {
    if !pending.isEmpty {
      var changes: [String: [Change]] = [:]
      for change in pending { changes[change.name, default: []].append(change) }
      for name in changes.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
        let list = changes[name] ?? []
        let kept = decider.name(list.map(\.stamp))
        if kept > 0 { durable[name] = list[kept - 1].node }
      }
      pending = []
    }
    visible = durable
  }
}
