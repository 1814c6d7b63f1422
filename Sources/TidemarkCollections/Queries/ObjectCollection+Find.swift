public import TidemarkEngine

extension ObjectCollection {
  /// Finds the objects that meet a condition, in an order.
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
  ///   - unreadable: is told of objects that cannot be read or are in no index, which may be
  ///     missing then; where nothing is given, the first one is an error.
  /// - Throws: `indexMissing`; `invalidArgument` for a comparison with no number, or by order with
  ///   nil, and for a cursor of another order; `coding` when an object cannot be read.
  public func find(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil, after cursor: ObjectCursor? = nil, scanning: Bool = false,
    unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> [Object] {
    let told = UnreadableObjects(told: unreadable)
    return try answer(condition, order, limit, cursor, scanning, told).objects
  }

  /// Reads one page of the objects that meet a condition, in an order. Errors of objects that
  /// cannot be read are in ``ObjectPage/unreadable``.
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
    var unreadable: [TidemarkError] = []
    let told = UnreadableObjects { unreadable.append($0) }
    var page = try answer(condition, order, limit, cursor, scanning, told)
    page.unreadable = unreadable
    return page
  }

  private func answer(
    _ condition: ObjectCondition<Object>, _ order: [ObjectOrder<Object>], _ limit: Int?,
    _ cursor: ObjectCursor?, _ scanning: Bool, _ tell: UnreadableObjects
  ) throws(TidemarkError) -> ObjectPage<Object> {
    do {
      let query = try ObjectQuery(core, condition, order)
      // The first page tells of what no index has.
      let known = cursor == nil ? try query.tellUnindexed(tell) : []
      let found = try query.rows.found(limit: limit, after: cursor)
      var page = ObjectPage<Object>()
      page.objects.reserveCapacity(found.count)
      try query.forEach(found, known: known, tell) { page.objects.append($1.object) }
      if let last = found.last, found.count == limit {
        page.next = query.rows.cursor(behind: last, after: cursor)
      }
      return page
    } catch {
      guard error.code == .indexMissing, scanning else { throw error }
      return try ObjectScan(self, condition, order).page(limit: limit, after: cursor, tell)
    }
  }

  /// Finds the ids of the objects that meet a condition, without reading the objects.
  /// - Parameter unreadable: see ``find(_:sort:limit:after:scanning:unreadable:)``.
  public func ids(
    where condition: ObjectCondition<Object>, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil, unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> [ID] {
    let query = try ObjectQuery(core, condition, order)
    let tell = UnreadableObjects(told: unreadable)
    let known = try query.tellUnindexed(tell)
    var ids: [ID] = []
    for row in try query.rows.found(limit: limit, after: nil) {
      let id = try tell.readable(unless: known.contains(row.id)) { () throws(TidemarkError) in
        try core.id(ofObject: row.id[...])
      }
      if let id { ids.append(id) }
    }
    return ids
  }

  /// Counts the objects that meet a condition, without reading them.
  /// - Parameter unreadable: see ``find(_:sort:limit:after:scanning:unreadable:)``.
  public func count(
    where condition: ObjectCondition<Object>, unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> Int {
    let query = try ObjectQuery(core, condition, [])
    try query.tellUnindexed(UnreadableObjects(told: unreadable))
    return try query.rows.count()
  }

  /// Finds the first object of a condition in an order; nil when no object meets the condition.
  /// - Parameter unreadable: see ``find(_:sort:limit:after:scanning:unreadable:)``.
  public func first(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> Object? {
    try find(condition, sort: order, limit: 1, unreadable: unreadable).first
  }

  /// Finds the smallest value of a property. Nil and NaN do not count; the result is nil when no
  /// other value is there.
  /// - Parameter unreadable: see ``find(_:sort:limit:after:scanning:unreadable:)``.
  public func min<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable,
    where condition: ObjectCondition<Object> = .everything,
    unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> Value? {
    let condition = condition && .isSomething(path)
    return try first(condition, sort: [.ascending(path)], unreadable: unreadable)?[keyPath: path]
  }

  /// Finds the largest value of a property. Nil and NaN do not count; the result is nil when no
  /// other value is there.
  /// - Parameter unreadable: see ``find(_:sort:limit:after:scanning:unreadable:)``.
  public func max<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable,
    where condition: ObjectCondition<Object> = .everything,
    unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> Value? {
    let condition = condition && .isSomething(path)
    return try first(condition, sort: [.descending(path)], unreadable: unreadable)?[keyPath: path]
  }

  /// Lists the different values of a property in ascending order, nil included. An index must begin
  /// with the property; one object is read for each value.
  /// - Parameter unreadable: see ``find(_:sort:limit:after:scanning:unreadable:)``.
  public func distinct<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> [Value] {
    let tell = UnreadableObjects(told: unreadable)
    let target = IndexTarget.value(path)
    guard let layout = core.usableLayouts.first(where: { $0.part(target) == 0 }) else {
      throw core.indexMissing(
        "no index of collection \(name) begins with it: declare \(target.declaration)")
    }
    // A query that is sorted by it takes the same rows.
    try ObjectQuery(core, .everything, [.ascending(path)]).tellUnindexed(tell)
    var values: [Value] = []
    var range = TermRange()
    while true {
      var scan = try RowScan(store.engine, layout.row.number, range)
      guard let row = try scan.nextRow() else { break }
      let object = try tell.readable { () throws(TidemarkError) in
        try core.object(core.id(ofObject: row.id))
      }
      if let object {
        values.append(object[keyPath: path])
      } else {
        // The object went since, or cannot be read: the next one may have the same value.
        range.lower = Array(row.term) + Array(row.id) + [0]
        continue
      }
      let length = IndexTerm.length(of: row.term, isInverted: layout.parts[0].isDescending) ?? 0
      guard length > 0, let next = TermRange.end(of: Array(row.term.prefix(length))) else { break }
      range.lower = next
    }
    return layout.parts[0].isDescending ? values.reversed() : values
  }

  /// Tells in words how a query would be answered, such as by which index.
  /// - Throws: `indexMissing`.
  public func explain(
    _ condition: ObjectCondition<Object>, sort order: [ObjectOrder<Object>] = []
  ) throws(TidemarkError) -> String {
    try ObjectQuery(core, condition, order).rows.plan.description
  }
}

extension CollectionView {
  /// Finds the objects of the view that meet a condition, in an order.
  ///
  /// Indexes know the newest state only: every object of the view is read for it.
  /// - Parameters:
  ///   - condition: the condition.
  ///   - order: what they are sorted by; where that is the same, by id.
  ///   - limit: most objects to return; nil for all.
  ///   - scanning: says that every object may be read.
  ///   - unreadable: is told of objects that cannot be read, which are left out then; where nothing
  ///     is given, the first one is an error.
  /// - Throws: `indexMissing` unless it may; `coding` when an object cannot be read.
  public func find(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil, scanning: Bool = false, unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> [Object] {
    guard scanning else {
      throw core.indexMissing(
        "indexes know the newest state only: a query of a view reads every object; ask for it with "
          + "scanning: true")
    }
    let tell = UnreadableObjects(told: unreadable)
    return try ObjectScan(self, condition, order).page(limit: limit, after: nil, tell).objects
  }
}

/// One page of a query's result, with the cursor for the next page.
public struct ObjectPage<Object: Sendable>: Sendable {
  /// The objects of this page, in the order of the query.
  public var objects: [Object] = []
  /// The cursor for the next page; nil when there is none.
  public var next: ObjectCursor?
  /// The errors of objects that could not be read, each with the object's id. The page may lack
  /// these objects. The first page also has the errors of objects that are in no index.
  public var unreadable: [TidemarkError] = []
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
