public import TidemarkEngine

extension ObjectCollection {
  /// The objects that meet a condition, in an order.
  ///
  /// ```swift
  /// let games = try packages.find(\.section == "games", sort: [.descending(\.size)], limit: 20)
  /// ```
  /// Indexes answer it; a condition or an order that no index has is refused with the index to
  /// declare, unless it asks for a scan. Without an order objects come by their ids.
  /// - Parameters:
  ///   - condition: the condition.
  ///   - order: what they are sorted by; where that is the same, by id.
  ///   - limit: most objects to return; nil for all.
  ///   - cursor: where the page before has ended, see ``page(_:sort:limit:after:scanning:)``.
  ///   - scanning: whether every object may be read for it, where no index serves.
  /// - Throws: `indexMissing`; `invalidArgument` for a comparison with no number, or by order with
  ///   nil, and for a cursor of another order; `coding` when an object cannot be decoded.
  public func find(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil, after cursor: ObjectCursor? = nil, scanning: Bool = false
  ) throws(TidemarkError) -> [Object] {
    try page(condition, sort: order, limit: limit, after: cursor, scanning: scanning).objects
  }

  /// The same in pages.
  ///
  /// ```swift
  /// var page = try notes.page(sort: [.descending(\.time)], limit: 50)
  /// while let cursor = page.next {
  ///   page = try notes.page(sort: [.descending(\.time)], limit: 50, after: cursor)
  /// }
  /// ```
  public func page(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    limit: Int?, after cursor: ObjectCursor? = nil, scanning: Bool = false
  ) throws(TidemarkError) -> ObjectPage<Object> {
    do {
      let query = try ObjectQuery(core, condition, order)
      let found = try query.found(limit: limit, after: cursor)
      var page = ObjectPage<Object>()
      page.objects.reserveCapacity(found.count)
      try query.forEach(found) { page.objects.append($1) }
      if let last = found.last, found.count == limit {
        page.next = query.cursor(behind: last, after: cursor)
      }
      return page
    } catch {
      guard error.code == .indexMissing, scanning else { throw error }
      return try ObjectScan(self, condition, order).page(limit: limit, after: cursor)
    }
  }

  /// The ids of the objects that meet a condition; no object is read for it.
  public func ids(
    where condition: ObjectCondition<Object>, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil
  ) throws(TidemarkError) -> [ID] {
    try ObjectQuery(core, condition, order).found(limit: limit, after: nil)
      .compactMap { ID.id(ofKeyBytes: $0.id[...]) }
  }

  /// How many objects meet a condition; no object is read for it.
  public func count(where condition: ObjectCondition<Object>) throws(TidemarkError) -> Int {
    try ObjectQuery(core, condition, []).count()
  }

  /// The first object of an order.
  public func first(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = []
  ) throws(TidemarkError) -> Object? {
    try find(condition, sort: order, limit: 1).first
  }

  /// The smallest value of a property, of objects that have one that is a number; nil when there is
  /// no such object.
  public func min<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable,
    where condition: ObjectCondition<Object> = .everything
  ) throws(TidemarkError) -> Value? {
    try first(condition && .isSomething(path), sort: [.ascending(path)])?[keyPath: path]
  }

  /// The largest value of a property, of objects that have one that is a number; nil when there is
  /// no such object.
  public func max<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable,
    where condition: ObjectCondition<Object> = .everything
  ) throws(TidemarkError) -> Value? {
    try first(condition && .isSomething(path), sort: [.descending(path)])?[keyPath: path]
  }

  /// The values of a property, each once, in order, nil among them: an index has to begin with it.
  /// Of each one object is read.
  public func distinct<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) throws(TidemarkError) -> [Value] {
    let target = IndexTarget.value(path)
    guard let layout = core.usableLayouts.first(where: { $0.part(target) == 0 }) else {
      throw TidemarkError(
        .indexMissing,
        "no index of collection \(name) begins with it: declare \(target.declaration)",
        object: ObjectPlace(collection: name))
    }
    var values: [Value] = []
    var range = TermRange()
    while true {
      var scan = try RowScan(store.engine, layout.row.number, range)
      guard let row = try scan.nextRow() else { break }
      if let id = ID.id(ofKeyBytes: row.id), let object = try core.newest(id) {
        values.append(object[keyPath: path])
      } else {
        // The object went since: the next one may have the same value.
        range.lower = Array(row.term) + Array(row.id) + [0]
        continue
      }
      let length = IndexTerm.length(of: row.term, isInverted: layout.parts[0].isDescending) ?? 0
      guard length > 0, let next = TermRange.end(of: Array(row.term.prefix(length))) else { break }
      range.lower = next
    }
    return layout.parts[0].isDescending ? values.reversed() : values
  }

  /// The way in which a query would be answered, in words.
  /// - Throws: `indexMissing`.
  public func explain(
    _ condition: ObjectCondition<Object>, sort order: [ObjectOrder<Object>] = []
  ) throws(TidemarkError) -> String {
    try ObjectQuery(core, condition, order).plan.description
  }
}

extension CollectionView {
  /// The objects that met a condition, in an order.
  ///
  /// Indexes know the newest state only: every object of the view is read for it.
  /// - Parameters:
  ///   - condition: the condition.
  ///   - order: what they are sorted by; where that is the same, by id.
  ///   - limit: most objects to return; nil for all.
  ///   - scanning: says that every object may be read.
  /// - Throws: `indexMissing` unless it may; `coding` when an object cannot be decoded.
  public func find(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil, scanning: Bool = false
  ) throws(TidemarkError) -> [Object] {
    guard scanning else {
      throw TidemarkError(
        .indexMissing,
        "indexes know the newest state only: a query of a view reads every object; ask for it with "
          + "scanning: true", object: ObjectPlace(collection: core.name))
    }
    return try ObjectScan(self, condition, order).page(limit: limit, after: nil).objects
  }
}

/// A page of a query's result.
public struct ObjectPage<Object: Sendable>: Sendable {
  /// The objects.
  public var objects: [Object] = []
  /// Where the next page goes on; nil when there is none.
  public var next: ObjectCursor?
}

extension QueryPlan: CustomStringConvertible {
  var description: String {
    var words = "reads \(source.words)"
    if case .all = rest {} else { words += "; looks at the rows of each object for the condition" }
    if isOrdered {
      words += isReversed ? "; in the index's order, from its end" : "; in the index's order"
    } else {
      words += "; sorts what it has found"
    }
    return words
  }
}

extension QueryPlan.Source {
  fileprivate var words: String {
    switch self {
    case .objects: "the keys of all objects"
    case .labels: "the keys of a label"
    case .rows(let layout, let ranges):
      ranges.count == 1
        ? "a range of index \(layout.row.name)"
        : "\(ranges.count) ranges of index \(layout.row.name)"
    case .union(let sources): sources.map(\.words).joined(separator: " and ")
    }
  }
}
