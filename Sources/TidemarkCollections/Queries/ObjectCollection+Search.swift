public import TidemarkEngine

extension ObjectCollection {
  /// Finds the objects whose texts contain some words, the best matches first.
  ///
  /// ```swift
  /// let hits = try notes.search("text", "rice cook", limit: 20)
  /// for hit in hits { print(hit.object.title, hit.score) }
  /// ```
  /// - Parameters:
  ///   - index: the name of a full-text index: `ObjectIndex(text: "text", …)`.
  ///   - query: the words.
  ///   - condition: a condition that a hit must meet, too; an index must serve it.
  ///   - limit: the most hits.
  ///   - unreadable: is told of objects that cannot be read or are in no index, which may be
  ///     missing then; where nothing is given, the first one is an error.
  /// - Throws: `indexMissing`; `invalidArgument` for a comparison with no number, or by order with
  ///   nil; `coding` when an object cannot be read.
  public func search(
    _ index: String, _ query: TextQuery, where condition: ObjectCondition<Object> = .everything,
    limit: Int = 50, unreadable: ((TidemarkError) -> Void)? = nil
  ) throws(TidemarkError) -> [TextHit<Object>] {
    let state = core.indexes?.now
    guard let state, let row = state.catalog.rows.first(where: { $0.name == index && $0.isText })
    else {
      throw core.indexMissing(
        "collection \(name) has no full-text index \(index): declare "
          + "ObjectIndex(text: \"\(index)\", …)")
    }
    guard row.isComplete, state.isReady else {
      throw core.indexMissing("index \(index) of collection \(name) is being built")
    }
    let layouts = core.layouts(state.catalog).filter(\.row.isComplete)
    let node = try condition.checked()
    for target in node.targets where !layouts.contains(where: { $0.part(target) != nil }) {
      throw core.indexMissing(
        "no index of collection \(name) has what is asked for: declare \(target.declaration)")
    }
    let texts = store.indexes.texts(row.number)
    if !store.usesThreads, texts.isMergeDue {
      // Another process has had the store: the next write tries again.
      do { try texts.merge() } catch { guard error.code == .cancelled else { throw error } }
    }
    guard limit > 0 else { return [] }
    // A merge that ends meanwhile takes the lists away that are read: then it is looked again.
    while true {
      let search = try TextSearch(store, texts, query)
      var hits: [TextHit<Object>] = []
      var errors: [TidemarkError] = []
      let fetch = core.fetch(search.view)
      let filter = RowFilter(
        engine: store.engine, prefix: core.prefix, state: state, layouts: layouts,
        view: search.view)
      for id in try filter.unindexed() {
        errors.append(try core.unindexed(id, in: search.view))
      }
      let collect = UnreadableObjects { errors.append($0) }
      for ranked in try search.ranked() {
        guard hits.count < limit else { break }
        guard let bytes = try search.accepts(ranked.document),
          try filter.meets(node, bytes[...]),
          let box = try collect.box(fetch.fetch([bytes])[0], of: core)
        else { continue }
        hits.append(TextHit(object: box.object, score: ranked.score))
      }
      guard search.isCurrent else { continue }
      for error in errors { try UnreadableObjects(told: unreadable).tell(error) }
      return hits
    }
  }
}

/// An object that a full-text search has found, with its score.
public struct TextHit<Object: Sendable>: Sendable {
  /// The object that was found.
  public var object: Object
  /// The rank of the match: a larger score is a better match. Scores of different queries do not
  /// compare.
  public var score: Double
}
