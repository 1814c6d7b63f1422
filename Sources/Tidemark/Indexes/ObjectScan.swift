internal import TidemarkEngine

/// A query that no index serves: every object is read for it.
struct ObjectScan<Reader: ObjectReader> {
  typealias Object = Reader.Object

  private let reader: Reader
  private let node: ConditionNode
  private let order: [ObjectOrder<Object>]

  init(
    _ reader: Reader, _ condition: ObjectCondition<Object>, _ order: [ObjectOrder<Object>]
  ) throws(TidemarkError) {
    self.reader = reader
    node = condition.node
    self.order = order
    for case .index(let name) in node.targets + order.map(\.target) {
      throw TidemarkError(
        .indexMissing,
        "collection \(reader.core.name) has no index \(name), and a scan does not know it",
        object: ObjectPlace(collection: reader.core.name))
    }
  }

  func page(limit: Int?, after cursor: ObjectCursor?) throws(TidemarkError) -> ObjectPage<Object> {
    var found: [(terms: [UInt8], id: [UInt8], object: Object)] = []
    let core = reader.core
    var walk = try RowWalk(reader.source, EntryQuery(prefix: core.prefix))
    while let row = try walk.nextRow() {
      guard let id = core.id(ofKey: row.key), let object = try reader.get(id),
        try matches(node, object, row, &walk)
      else { continue }
      var terms: [UInt8] = []
      for order in order {
        terms += IndexPart<Int>.directed(
          try values(order.target, of: object).first ?? IndexTerm.nothing.bytes,
          order.isDescending)
      }
      found.append((terms, Array(row.key[core.prefix.count...]), object))
    }
    func precedes(_ a: ([UInt8], [UInt8]), _ b: ([UInt8], [UInt8])) -> Bool {
      a.0 != b.0
        ? a.0.lexicographicallyPrecedes(b.0) : a.1.lexicographicallyPrecedes(b.1)
    }
    found.sort { precedes(($0.terms, $0.id), ($1.terms, $1.id)) }
    if let cursor {
      let end = found.firstIndex { precedes((cursor.terms, cursor.id), ($0.terms, $0.id)) }
      found.removeFirst(end ?? found.count)
    }
    let rows = found.prefix(Swift.max(0, limit ?? .max))
    var page = ObjectPage(objects: rows.map(\.object))
    if let last = rows.last, rows.count == limit {
      page.next = ObjectCursor(terms: last.terms, id: last.id)
    }
    return page
  }

  private func matches(
    _ node: ConditionNode, _ object: Object, _ row: ScanRow, _ walk: inout RowWalk
  ) throws(TidemarkError) -> Bool {
    switch node {
    case .all: return true
    case .labels(let filter):
      return filter.query.matches(try walk.info(row).labels)
    case .compare(let target, let ranges):
      let values = try values(target, of: object)
      return values.contains { value in ranges.contains { $0.contains(value) } }
    case .not(let node): return try !matches(node, object, row, &walk)
    case .and(let nodes):
      for node in nodes where try !matches(node, object, row, &walk) { return false }
      return true
    case .or(let nodes):
      for node in nodes where try matches(node, object, row, &walk) { return true }
      return false
    }
  }

  private func values(_ target: IndexTarget, of object: Object) throws(TidemarkError) -> [[UInt8]] {
    guard case .path(let path, let isFolded, let isEach) = target else { return [] }
    let value = object[keyPath: path as AnyKeyPath]
    if isFolded, let text = value as? String {
      return [IndexTerm.folded(FoldedText(text), of: text).bytes]
    }
    if isEach, let values = value as? any Sequence {
      return values.compactMap { ($0 as? any IndexValue)?.indexTerm.bytes }
    }
    return (value as? any IndexValue).map { [$0.indexTerm.bytes] } ?? []
  }
}
