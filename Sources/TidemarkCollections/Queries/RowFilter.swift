internal import TidemarkEngine

/// The objects of a collection by the rows that indexes have of them, in one state of the store.
struct RowFilter {
  let engine: Engine
  /// The beginning of the objects' keys.
  let prefix: [UInt8]
  /// Nil where the collection has no indexes.
  let state: CollectionIndexes.State?
  /// The collection's indexes that are complete, which a query may read.
  let layouts: [IndexLayout]
  let view: EngineView

  /// The number by which keys of index rows name the collection; 0 where it has no indexes.
  private var number: UInt32 { state?.catalog.number ?? 0 }
  /// Whether there may be objects that are in no index.
  private var mayHaveMarks: Bool { state?.mayHaveMarks == true }

  /// The ids of objects that are in no index, and so missing where rows are asked.
  func unindexed() throws(TidemarkError) -> [[UInt8]] {
    guard mayHaveMarks else { return [] }
    let marks = IndexKeys.marks(ofCollection: number)
    return try engine.derivedKeys(marks, in: view).map { Array($0[marks.count...]) }
  }

  /// Whether an object is in no index by now.
  func isUnindexed(_ id: [UInt8]) throws(TidemarkError) -> Bool {
    guard mayHaveMarks else { return false }
    let mark = IndexKeys.marks(ofCollection: number) + id
    return try engine.reader.newestEntry(ofKey: mark.rawSpan) > 0
  }

  /// The rows of an object; nil where it is marked: no query finds what is in no index.
  func rows(_ id: ArraySlice<UInt8>) throws(TidemarkError) -> [DerivedRow]? {
    let rows = try view.derivedValue(IndexKeys.objects(ofCollection: number) + id) {
      (value) throws(TidemarkError) in try IndexKeys.decode(value)
    }
    if let rows { return rows }
    let mark = IndexKeys.marks(ofCollection: number) + id
    guard mayHaveMarks, try view.derivedValue(mark, { _ in true }) == true else {
      return []
    }
    return nil
  }

  /// The values that an object has of a target, by its rows.
  func values(
    _ target: IndexTarget, _ rows: [DerivedRow]
  ) throws(TidemarkError) -> [ArraySlice<UInt8>] {
    for layout in layouts {
      guard let part = layout.part(target) else { continue }
      var values: [ArraySlice<UInt8>] = []
      for row in rows where row.index == layout.row.number {
        values.append(try layout.split(row.term[...])[part])
      }
      return values
    }
    return []
  }

  /// Whether an object meets a condition, whose targets all have indexes.
  /// - Parameter rows: its rows, where they are known.
  func meets(
    _ node: ConditionNode, _ id: ArraySlice<UInt8>, _ rows: [DerivedRow]? = nil
  ) throws(TidemarkError) -> Bool {
    if case .all = node { return true }
    let known: [DerivedRow]? = if let rows { rows } else { try self.rows(id) }
    guard let known else { return false }
    return try node.isMet { (target) throws(TidemarkError) in
      try values(target, known)
    } labels: { (labels) throws(TidemarkError) in
      let key = prefix + id
      guard let entry = try view.entry(forKey: key.rawSpan) else { return false }
      return labels.query.matches(try engine.reader.info(entry).labels)
    }
  }
}
