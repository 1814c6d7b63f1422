internal import TidemarkEngine

/// The parts of an index, apart from the type of the objects.
struct IndexLayout: Sendable {
  /// A property and its direction, in an index or in the order that a query asks for.
  struct Part: Sendable, Hashable {
    var target: IndexTarget
    var isDescending: Bool

    /// Whether the property is an array, each element of which gets a row in the index.
    var isEach: Bool { !target.isSingle }
  }

  var row: IndexCatalog.Row
  var parts: [Part]

  init<Object>(_ index: ObjectIndex<Object>, _ row: IndexCatalog.Row) {
    self.row = row
    parts = index.parts.map { part in
      Part(target: part.target ?? .index(index.name), isDescending: part.isDescending)
    }
  }

  /// The number of the part that a target is about.
  func part(_ target: IndexTarget) -> Int? {
    if row.isText { return nil }
    if case .index(let name) = target { return name == row.name ? 0 : nil }
    return parts.firstIndex { $0.target == target }
  }

  /// The bytes of the parts of a term, as if all were ascending.
  func split(_ term: ArraySlice<UInt8>) throws(TidemarkError) -> [ArraySlice<UInt8>] {
    var values: [ArraySlice<UInt8>] = []
    var rest = term
    for part in parts {
      var length = 0
      // A folded text has the text itself behind it.
      for _ in 0..<(part.target.isFolded ? 2 : 1) {
        guard
          let next = IndexTerm.length(of: rest.dropFirst(length), isInverted: part.isDescending)
        else { throw IndexKeys.damaged("a term of index \(row.name)") }
        length += next
      }
      let bytes = rest.prefix(length)
      values.append(part.isDescending ? bytes.map { ~$0 }[...] : bytes)
      rest = rest.dropFirst(length)
    }
    return values
  }
}

/// The structure of a condition, apart from the type of the objects.
indirect enum ConditionNode: Sendable {
  case all
  case compare(IndexTarget, [TermRange])
  case labels(LabelFilter)
  case and([ConditionNode])
  case or([ConditionNode])
  case not(ConditionNode)

  var targets: [IndexTarget] {
    switch self {
    case .all, .labels: []
    case .compare(let target, _): [target]
    case .not(let node): node.targets
    case .and(let nodes), .or(let nodes): nodes.flatMap(\.targets)
    }
  }

  /// Whether an object meets the condition.
  /// - Parameters:
  ///   - values: the object's values of a target.
  ///   - labels: whether it has the labels of a filter.
  func isMet<Value: Sequence<UInt8>>(
    _ values: (IndexTarget) throws(TidemarkError) -> [Value],
    labels: (LabelFilter) throws(TidemarkError) -> Bool
  ) throws(TidemarkError) -> Bool {
    switch self {
    case .all: return true
    case .labels(let filter): return try labels(filter)
    case .compare(let target, let ranges):
      return try values(target).contains { value in ranges.contains { $0.contains(value) } }
    case .not(let node): return try !node.isMet(values, labels: labels)
    case .and(let nodes):
      for node in nodes where try !node.isMet(values, labels: labels) { return false }
      return true
    case .or(let nodes):
      for node in nodes where try node.isMet(values, labels: labels) { return true }
      return false
    }
  }

  /// The conditions that have to hold altogether.
  var conjuncts: [ConditionNode] {
    switch self {
    case .all: []
    case .and(let nodes): nodes.flatMap(\.conjuncts)
    default: [self]
    }
  }

  /// The same condition with negations of labels and of indexes of several values only: an object
  /// has one term of everything else, so that an index leads to those outside of a range.
  var withoutNegations: ConditionNode {
    switch self {
    case .all, .labels, .compare: self
    case .and(let nodes): .and(nodes.map(\.withoutNegations))
    case .or(let nodes): .or(nodes.map(\.withoutNegations))
    case .not(let node): node.negated
    }
  }

  private var negated: ConditionNode {
    switch self {
    case .all: .or([])
    case .labels: .not(self)
    case .compare(let target, let ranges):
      target.isSingle ? .compare(target, TermRange.outside(ranges)) : .not(self)
    case .and(let nodes): .or(nodes.map(\.negated))
    case .or(let nodes): .and(nodes.map(\.negated))
    case .not(let node): node.withoutNegations
    }
  }
}
