internal import TidemarkEngine

/// An object that a query has found.
struct FoundObject: Sendable, Hashable {
  var id: [UInt8]
  /// The terms that it is sorted by, in the query's order.
  var terms: [UInt8] = []

  /// - Parameter isReversed: whether the larger id of two that are equal in the order comes first.
  func precedes(_ other: FoundObject, _ isReversed: Bool) -> Bool {
    let order = terms.isEmpty ? 0 : terms.rawSpan.compare(to: other.terms.rawSpan)
    if order != 0 { return order < 0 }
    let ids = id.rawSpan.compare(to: other.id.rawSpan)
    return isReversed ? ids > 0 : ids < 0
  }
}

/// The objects of a query by their ids, over one state of the store, apart from their type: code
/// for all types is compiled for none, and slow.
struct RowQuery {
  private let engine: Engine
  /// The beginning of the objects' keys.
  private let prefix: [UInt8]
  let filter: RowFilter
  private let order: [IndexLayout.Part]
  private let node: ConditionNode
  let plan: QueryPlan
  let view: EngineView

  /// - Parameters:
  ///   - name: the collection's name.
  ///   - prefix: the beginning of the objects' keys.
  ///   - node: the condition.
  ///   - order: what objects are sorted by.
  ///   - state: the collection's indexes; nil where it has none.
  ///   - all: those that the collection has declared.
  ///   - counted: so far rows are counted to choose between indexes.
  /// - Throws: `indexMissing`.
  init(
    _ engine: Engine, _ name: String, _ prefix: [UInt8], _ node: ConditionNode,
    _ order: [IndexLayout.Part], _ state: CollectionIndexes.State?, _ all: [IndexLayout],
    _ counted: Int
  ) throws(TidemarkError) {
    self.engine = engine
    self.prefix = prefix
    self.node = node
    self.order = order
    let layouts = state?.usable(all) ?? []
    let usable = Set(layouts.map(\.row.number))
    let planner = QueryPlanner(
      collection: name, layouts: layouts,
      unfinished: all.filter { !usable.contains($0.row.number) }, engine: engine, counted: counted)
    plan = try planner.plan(node, order)
    view = try engine.reader.view()
    filter = RowFilter(engine: engine, prefix: prefix, state: state, layouts: layouts, view: view)
  }

  /// The objects that were found, in order.
  /// - Parameters:
  ///   - limit: most of them.
  ///   - cursor: the last one of those before.
  ///   - direction: whether objects that are equal in the order come from the last id to the first;
  ///     nil for as on the page before, or as the plan has it.
  func found(
    limit: Int?, after cursor: ObjectCursor?, reversed direction: Bool? = nil
  ) throws(TidemarkError) -> [FoundObject] {
    try cursor?.check(order)
    let most = max(0, limit ?? .max)
    let isReversed = direction ?? isReversed(after: cursor)
    if plan.isOrdered, plan.isReversed == isReversed,
      case .rows(let layout, let ranges) = plan.source
    {
      return try walked(layout, ranges[0], most, cursor)
    }
    var found: [FoundObject] = []
    for id in try ids(of: plan.source) {
      guard let terms = try terms(id, plan.rest) else { continue }
      found.append(FoundObject(id: id, terms: terms))
    }
    found = sorted(found, isReversed)
    if let cursor {
      let end = found.firstIndex { cursor.last.precedes($0, isReversed) }
      found.removeFirst(end ?? found.count)
    }
    return Array(found.prefix(most))
  }

  /// Whether objects that are equal in the order come from the last id to the first: as on the page
  /// before, whichever way that was found.
  func isReversed(after cursor: ObjectCursor?) -> Bool { cursor?.isReversed ?? plan.isReversed }

  /// A cursor behind an object, which was found after another one.
  func cursor(behind last: FoundObject, after cursor: ObjectCursor?) -> ObjectCursor {
    ObjectCursor(last: last, order: order, isReversed: isReversed(after: cursor))
  }

  /// The ids of objects that are in no index, and so missing where rows are asked.
  func unindexed() throws(TidemarkError) -> [[UInt8]] {
    switch (plan.source, plan.rest) {
    case (.objects, .all), (.labels, .all): return []
    default: break
    }
    return PlantedBug.isOn(.unindexedUntold) ? [] : try filter.unindexed()
  }

  func count() throws(TidemarkError) -> Int {
    if case .all = plan.rest, case .rows(let layout, let ranges) = plan.source,
      !layout.parts.contains(where: \.isEach)
    {
      var count = 0
      for range in ranges {
        count += try RowScan(engine, layout.row.number, range, view: view).count(upTo: .max)
      }
      return count
    }
    return try found(limit: nil, after: nil).count
  }

  /// An object, if it meets the condition.
  func found(id: [UInt8]) throws(TidemarkError) -> FoundObject? {
    let key = prefix + id
    guard try engine.reader.newestEntry(ofKey: key.rawSpan) > 0 else { return nil }
    return try terms(id, node).map { FoundObject(id: id, terms: $0) }
  }

  /// The objects in order. Their first bytes are compared as numbers, so that most comparisons
  /// look at no array.
  private func sorted(_ found: [FoundObject], _ isReversed: Bool) -> [FoundObject] {
    struct Row {
      var words: (UInt64, UInt64)
      var place: Int
    }
    let inverted: UInt64 = order.isEmpty && isReversed ? .max : 0
    var rows: [Row] = []
    rows.reserveCapacity(found.count)
    for (place, object) in found.enumerated() {
      let bytes = order.isEmpty ? object.id : object.terms
      let words = (
        bytes.rawSpan.bigEndianWord(at: 0) ^ inverted, bytes.rawSpan.bigEndianWord(at: 8) ^ inverted
      )
      rows.append(Row(words: words, place: place))
    }
    rows.sort { a, b in
      if a.words.0 != b.words.0 { return a.words.0 < b.words.0 }
      if a.words.1 != b.words.1 { return a.words.1 < b.words.1 }
      return found[a.place].precedes(found[b.place], isReversed)
    }
    return rows.map { found[$0.place] }
  }

  private func walked(
    _ layout: IndexLayout, _ range: TermRange, _ most: Int, _ cursor: ObjectCursor?
  ) throws(TidemarkError) -> [FoundObject] {
    var after: [UInt8]?
    if let cursor {
      let term = range.lower.prefix(plan.fixedBytes) + cursor.last.terms.directed(plan.isReversed)
      after = IndexKeys.row(
        DerivedRow(index: layout.row.number, term: Array(term)), id: cursor.last.id[...])
    }
    var scan = try RowScan(
      engine, layout.row.number, range, after: after, reversed: plan.isReversed, view: view)
    var found: [FoundObject] = []
    while found.count < most, let row = try scan.nextRow() {
      guard try filter.meets(plan.rest, row.id) else { continue }
      let terms = Array(row.term.dropFirst(plan.fixedBytes)).directed(plan.isReversed)
      found.append(FoundObject(id: Array(row.id), terms: terms))
    }
    return found
  }

  /// The ids of a source, each once.
  private func ids(of source: QueryPlan.Source) throws(TidemarkError) -> [[UInt8]] {
    var ids: [[UInt8]] = []
    try forEachID(of: source) { ids.append($0) }
    switch source {
    case .objects, .labels: return ids
    // A row leads to an object, and only an index of several values has more than one for it.
    case .rows(let layout, _) where !layout.parts.contains(where: \.isEach): return ids
    case .rows, .union: return Array(Set(ids))
    }
  }

  private func forEachID(
    of source: QueryPlan.Source, _ body: ([UInt8]) -> Void
  ) throws(TidemarkError) {
    switch source {
    case .union(let sources): for source in sources { try forEachID(of: source, body) }
    case .rows(let layout, let ranges):
      for range in ranges {
        let scan = try RowScan(engine, layout.row.number, range, view: view)
        try scan.forEachID { body([UInt8](copying: $0)) }
      }
    case .objects, .labels:
      var query = ScanQuery(prefix: prefix)
      if case .labels(let labels) = source { query.labels = labels.query }
      try EngineScan(engine.reader, query, view: view).forEach {
        body(Array($0.key[prefix.count...]))
      }
    }
  }

  /// The terms that an object is sorted by; nil when it does not meet the condition.
  private func terms(
    _ id: [UInt8], _ node: ConditionNode
  ) throws(TidemarkError) -> [UInt8]? {
    if case .all = node, order.isEmpty { return [] }
    guard let rows = try filter.rows(id[...]), try filter.meets(node, id[...], rows) else {
      return nil
    }
    var terms: [UInt8] = []
    for order in order {
      let values = try filter.values(order.target, rows)
      // An object with several values comes by the first of them, or the last.
      let first = values.map { Array($0).directed(order.isDescending) }
        .min { $0.lexicographicallyPrecedes($1) }
      terms += first ?? IndexTerm.nothing.bytes.directed(order.isDescending)
    }
    return terms
  }
}

extension EngineView {
  /// The value of a derived key as the state has it.
  func derivedValue<Result>(
    _ key: [UInt8], _ decode: (RawSpan) throws(TidemarkError) -> Result
  ) throws(TidemarkError) -> Result? {
    let newest = try reader.withValue(forKey: key.rawSpan) {
      (value, sequence) throws(TidemarkError) -> Result? in
      sequence <= self.sequence ? try decode(value) : nil
    }
    if case .some(.some(let found)) = newest { return found }
    // The key was written or removed since, unless it was never there.
    guard let entry = try self.entry(forKey: key.rawSpan) else { return nil }
    return try reader.withValue(of: reader.info(entry).valueSequence) {
      (value, _) throws(TidemarkError) in
      try decode(value)
    }
  }
}
