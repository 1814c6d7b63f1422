internal import TidemarkEngine

/// The way in which a query is answered.
struct QueryPlan: Sendable {
  enum Source: Sendable {
    /// All objects of the collection, by id.
    case objects
    /// Rows of an index.
    case rows(IndexLayout, [TermRange])
    case labels(LabelFilter)
    /// Objects of several sources, each once.
    case union([Source])
  }

  var source: Source
  /// The condition that is left to be looked at, object by object.
  var rest: ConditionNode
  /// Whether rows come in the order that is asked for, or its reverse.
  var isOrdered = false
  var isReversed = false
  /// How many bytes of each row stand before what it is sorted by.
  var fixedBytes = 0
}

struct QueryPlanner {
  let collection: String
  let layouts: [IndexLayout]
  /// The ones that are not complete.
  let unfinished: [IndexLayout]
  let engine: Engine
  /// Rows are counted so far to compare sources.
  var counted = 1_000

  /// - Throws: `indexMissing` when no index serves the query.
  func plan(_ node: ConditionNode, _ order: [IndexLayout.Part]) throws(TidemarkError) -> QueryPlan {
    for target in node.targets + order.map(\.target) {
      guard layouts.contains(where: { $0.part(target) != nil }) else {
        if let index = unfinished.first(where: { $0.part(target) != nil }) {
          throw missing("index \(index.row.name) of collection \(collection) is being built")
        }
        throw missing(
          "no index of collection \(collection) has what is asked for: declare "
            + target.declaration)
      }
    }
    let source = try source(of: node)
    if let ordered = ordered(node, order) {
      if case .all = ordered.rest { return ordered }
      // A few objects are faster sorted than found among all.
      guard ordered.fixedBytes == 0, let source, try count(source) < counted else {
        return ordered
      }
      return QueryPlan(
        source: source, rest: rest(of: node, behind: source), isReversed: ordered.isReversed)
    }
    if let source { return QueryPlan(source: source, rest: rest(of: node, behind: source)) }
    return QueryPlan(source: .objects, rest: node)
  }

  /// The condition that is left to be looked at, when all comes from a source.
  private func rest(of node: ConditionNode, behind source: QueryPlan.Source) -> ConditionNode {
    switch (node, source) {
    case (.labels, .labels): return .all
    case (_, .rows(let layout, _)):
      // The rows were chosen by the parts that are fixed, and one behind them that is bounded.
      return rest(of: node, layout, through: fixed(layout, node.conjuncts).parts)
    default: return node
    }
  }

  /// - Parameter last: the last part of an index by which rows were chosen.
  private func rest(
    of node: ConditionNode, _ layout: IndexLayout, through last: Int
  ) -> ConditionNode {
    var parts: Set<Int> = []
    for condition in node.conjuncts {
      guard case .compare(let target, _) = condition, let part = layout.part(target),
        part <= last, parts.insert(part).inserted
      else { return node }
    }
    return .all
  }

  private func missing(_ words: String) -> TidemarkError {
    TidemarkError(
      .indexMissing, "\(words); or ask with scanning, which reads every object",
      object: ObjectPlace(collection: collection))
  }

  /// The best way to all objects that meet a condition; nil where none leads to them.
  private func source(of node: ConditionNode) throws(TidemarkError) -> QueryPlan.Source? {
    switch node {
    case .all, .not: return nil
    case .labels(let filter): return filter.isPositive ? .labels(filter) : nil
    case .or(let nodes):
      var sources: [QueryPlan.Source] = []
      for node in nodes {
        guard let source = try source(of: node) else { return nil }
        sources.append(source)
      }
      return .union(sources)
    case .compare, .and:
      var candidates = layouts.compactMap { $0.row.isText ? nil : rows(of: $0, node.conjuncts) }
      for other in node.conjuncts {
        if case .compare = other { continue }
        if let source = try source(of: other) { candidates.append(source) }
      }
      guard candidates.count > 1 else { return candidates.first }
      var best = (candidates[0], try count(candidates[0]))
      for candidate in candidates.dropFirst() {
        let count = try count(candidate)
        if count < best.1 { best = (candidate, count) }
      }
      return best.0
    }
  }

  /// The rows of an index that some conditions lead to.
  private func rows(of layout: IndexLayout, _ conjuncts: [ConditionNode]) -> QueryPlan.Source? {
    let (fixed, number) = fixed(layout, conjuncts)
    guard number < layout.parts.count,
      let ranges = ranges(layout, number, conjuncts)
    else { return number > 0 ? .rows(layout, [.beginning(with: fixed)]) : nil }
    return .rows(layout, ranges.map { $0.behind(fixed) })
  }

  /// The bytes of the first parts that conditions fix to one value, and how many these are.
  /// - Parameter most: how many parts are looked at.
  private func fixed(
    _ layout: IndexLayout, _ conjuncts: [ConditionNode], most: Int = .max
  ) -> (bytes: [UInt8], parts: Int) {
    var bytes: [UInt8] = []
    let parts = layout.parts.prefix(most)
    for (number, part) in parts.enumerated() {
      guard !part.target.isFolded, !part.isEach,
        let ranges = ranges(layout, number, conjuncts, directed: false), ranges.count == 1,
        ranges[0].isOneTerm
      else { return (bytes, number) }
      bytes += ranges[0].lower.directed(part.isDescending)
    }
    return (bytes, parts.count)
  }

  private func ranges(
    _ layout: IndexLayout, _ number: Int, _ conjuncts: [ConditionNode], directed: Bool = true
  ) -> [TermRange]? {
    var found: [TermRange]?
    for case .compare(let target, let ranges) in conjuncts where layout.part(target) == number {
      // A second condition on a part is looked at object by object, unless both bound one range.
      if let known = found, known.count == 1, ranges.count == 1, !layout.parts[number].isEach {
        found = [known[0].intersection(ranges[0])]
      } else if found == nil || ranges.count == 1 {
        found = ranges
      }
    }
    guard directed, layout.parts[number].isDescending else { return found }
    return found?.map(\.inverted)
  }

  /// The plan that walks an index in the order that is asked for.
  ///
  /// The index has to end with what is sorted by, so that equal ones come by their ids.
  private func ordered(_ node: ConditionNode, _ order: [IndexLayout.Part]) -> QueryPlan? {
    guard let leading = order.first else { return nil }
    var best: QueryPlan?
    let conjuncts = node.conjuncts
    for layout in layouts where !layout.row.isText && !layout.parts.contains(where: \.isEach) {
      let first = layout.parts.count - order.count
      guard first >= 0, matches(layout.parts[first...], order) else { continue }
      let (fixed, parts) = fixed(layout, conjuncts, most: first)
      guard parts == first else { continue }
      guard fixed.count > best?.fixedBytes ?? -1 else { continue }
      var range = TermRange()
      var last = first - 1
      if let ranges = ranges(layout, first, conjuncts), ranges.count == 1 {
        range = ranges[0]
        last = first
      }
      best = QueryPlan(
        source: .rows(layout, [range.behind(fixed)]),
        rest: rest(of: node, layout, through: last), isOrdered: true,
        isReversed: layout.parts[first].isDescending != leading.isDescending,
        fixedBytes: fixed.count)
    }
    return best
  }

  private func matches(_ parts: ArraySlice<IndexLayout.Part>, _ order: [IndexLayout.Part]) -> Bool {
    zip(parts, order).allSatisfy { $0.target == $1.target }
      && Set(zip(parts, order).map { $0.isDescending != $1.isDescending }).count == 1
  }

  /// How many rows a source has, as far as it matters.
  func count(_ source: QueryPlan.Source) throws(TidemarkError) -> Int {
    switch source {
    case .objects: return counted
    // Labels have lists of their own.
    case .labels: return counted - 1
    case .union(let sources):
      var count = 0
      for source in sources { count += try self.count(source) }
      return count
    case .rows(let layout, let ranges):
      var count = 0
      for range in ranges where count < counted {
        count += try RowScan(engine, layout.row.number, range).count(upTo: counted - count)
      }
      return count
    }
  }
}
