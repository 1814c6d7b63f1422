internal import TidemarkEngine

extension CollectionCore {
  /// Compares all rows of the indexes with those that the objects have; for tests and campaigns.
  /// - Returns: what is wrong first; nil for nothing.
  package func firstDisagreement() throws(TidemarkError) -> String? {
    guard let state = indexes?.now else { return nil }
    var expected: Set<[UInt8]> = []
    let marks = IndexKeys.marks(ofCollection: state.catalog.number)
    let marked = Set(try store.engine.derivedKeys(marks).map { $0[marks.count...] })
    var keys = try store.keys(prefix: prefix)
    while let key = try keys.next()?.bytes {
      let id = key[prefix.count...]
      let rowsKey = IndexKeys.objects(ofCollection: state.catalog.number) + id
      let known = try store.engine.reader.withValue(forKey: rowsKey.rawSpan) {
        (value, _) throws(TidemarkError) in try IndexKeys.decode(value)
      }
      if marked.contains(id) {
        if known != nil { return "an object that is marked has rows" }
        continue
      }
      guard let object = try stored(key, in: store.source, isToBeWritten: true) else {
        continue
      }
      var rows = try state.rows(
        codec.terms(of: codec.decode(object.bytes, version: object.version, id: id), id: id),
        id: id.count)
      // The number of a document is any.
      state.catalog.numberDocuments(of: &rows, as: known ?? [])
      guard Set(rows) == Set(known ?? []) else {
        return "object \(String(decoding: id, as: UTF8.self)) has other rows than are stored"
      }
      for row in rows { expected.insert(IndexKeys.row(row, id: id)) }
      if !rows.isEmpty { expected.insert(rowsKey) }
    }
    var found: Set<[UInt8]> = []
    for index in state.catalog.rows {
      found.formUnion(try store.engine.derivedKeys(IndexKeys.rows(ofIndex: index.number)))
    }
    let objects = IndexKeys.objects(ofCollection: state.catalog.number)
    found.formUnion(try store.engine.derivedKeys(objects))
    if let missing = expected.subtracting(found).first {
      return "a row is missing: \(Key(missing))"
    }
    if let other = found.subtracting(expected).first {
      return "a row leads to no object: \(Key(other))"
    }
    return nil
  }
}
