internal import TidemarkEngine

/// A query that no index serves: every object is read for it.
struct ObjectScan<Reader: ObjectReader> {
  typealias Object = Reader.Object

  private let reader: Reader
  private let node: ConditionNode
  private let order: [IndexLayout.Part]

  init(
    _ reader: Reader, _ condition: ObjectCondition<Object>, _ order: [ObjectOrder<Object>]
  ) throws(TidemarkError) {
    self.reader = reader
    node = try condition.checked()
    self.order = order.map(\.planned)
    for case .index(let name) in node.targets + self.order.map(\.target) {
      throw reader.core.indexMissing(
        "collection \(reader.core.name) has no index \(name), and a scan does not know it")
    }
  }

  func page(
    limit: Int?, after cursor: ObjectCursor?, _ tell: UnreadableObjects = .fail
  ) throws(TidemarkError) -> ObjectPage<Object> {
    try cursor?.check(order)
    let isReversed = cursor?.isReversed ?? false
    var all: [(row: FoundObject, object: Object)] = []
    let core = reader.core
    try reader.forEachRows(EntryQuery(prefix: core.prefix)) { (rows, view) throws(TidemarkError) in
      var labels: [[[UInt8]]]?
      for (place, answer) in try core.fetch(view).fetch(rows).enumerated() {
        guard let object = try tell.box(answer, of: core)?.object else { continue }
        let isMet = try node.isMet { (target) throws(TidemarkError) in
          values(target, of: object)
        } labels: { (wanted) throws(TidemarkError) in
          if labels == nil { labels = try core.labels(of: rows) }
          return wanted.query.matches(labels?[place] ?? [])
        }
        guard isMet else { continue }
        var terms: [UInt8] = []
        for order in order {
          let term = values(order.target, of: object).first ?? IndexTerm.nothing.bytes
          terms += term.directed(order.isDescending)
        }
        let id = Array(rows[rows.startIndex + place].key[core.prefix.count...])
        all.append((FoundObject(id: id, terms: terms), object))
      }
    }
    all.sort { $0.row.precedes($1.row, isReversed) }
    if let cursor {
      let end = all.firstIndex { cursor.last.precedes($0.row, isReversed) }
      all.removeFirst(end ?? all.count)
    }
    let rows = all.prefix(Swift.max(0, limit ?? .max))
    var page = ObjectPage(objects: rows.map(\.object))
    if let last = rows.last, rows.count == limit {
      page.next = ObjectCursor(last: last.row, order: order, isReversed: isReversed)
    }
    return page
  }

  private func values(_ target: IndexTarget, of object: Object) -> [[UInt8]] {
    guard case .path(_, _, let terms) = target else { return [] }
    return terms(object)
  }
}

extension CollectionCore {
  fileprivate func labels(of rows: ArraySlice<ScanRow>) throws(TidemarkError) -> [[[UInt8]]] {
    var labels = [[[UInt8]]](repeating: [], count: rows.count)
    try store.engine.reader.entries.forEachInfo(of: Array(rows)) {
      (index, info) throws(TidemarkError) in
      labels[index] = info.labels
    }
    return labels
  }
}
