/// Tells which keys are wanted, by the labels that they carry.
package struct LabelQuery: Sendable, Hashable {
  /// Labels that a key must carry, every one.
  package var all: [[UInt8]]
  /// Labels of which a key must carry at least one, unless there are none here.
  package var any: [[UInt8]]
  /// Labels that a key must not carry.
  package var not: [[UInt8]]

  package init(all: [[UInt8]] = [], any: [[UInt8]] = [], not: [[UInt8]] = []) {
    self.all = all
    self.any = any
    self.not = not
  }

  /// Whether every key matches.
  package var isEmpty: Bool { all.isEmpty && any.isEmpty && not.isEmpty }

  package func matches(_ labels: [[UInt8]]) -> Bool {
    all.allSatisfy(labels.contains) && (any.isEmpty || any.contains(where: labels.contains))
      && !not.contains(where: labels.contains)
  }
}

/// A label query in label ids: decides by the id of a key's set of labels, each set once. Ids may
/// be given up later, so it serves one page of a walk, under the owner's lock.
struct LabelPredicate {
  let all: [UInt32]
  let any: [UInt32]
  private let not: [UInt32]
  /// Whether the query names labels of which one is enough; `any` has those of them that exist.
  private let wantsAny: Bool
  /// Answers by set: 1 if it matches.
  private var known = IDMap()
  /// The set asked about last, and the answer.
  private var last: (set: UInt32, matches: Bool)?
  private var ids: [UInt32] = []

  /// Nil if no key can match, since no key carries a label that the query needs.
  init?(_ query: LabelQuery, _ table: LabelTable) throws(IndexError) {
    all = try Self.ids(query.all, table)
    guard all.count == query.all.count else { return nil }
    any = try Self.ids(query.any, table)
    not = try Self.ids(query.not, table)
    wantsAny = !query.any.isEmpty
    if wantsAny && any.isEmpty { return nil }
  }

  /// Whether keys with this set of labels match.
  mutating func matches(_ set: UInt32, _ table: LabelTable) throws(IndexError) -> Bool {
    if let last, last.set == set { return last.matches }
    if let answer = known[set] {
      last = (set, answer != 0)
      return answer != 0
    }
    try table.labelIDs(ofSet: set, into: &ids)
    let answer =
      all.allSatisfy(ids.contains) && (!wantsAny || any.contains(where: ids.contains))
      && !not.contains(where: ids.contains)
    known.insert(set, answer ? 1 : 0)
    last = (set, answer)
    return answer
  }

  /// The ids of those labels that have one: no key carries the others.
  private static func ids(_ labels: [[UInt8]], _ table: LabelTable) throws(IndexError) -> [UInt32] {
    var ids: [UInt32] = []
    for label in labels { if let id = try table.labels.find(label.rawSpan) { ids.append(id) } }
    return ids
  }
}
