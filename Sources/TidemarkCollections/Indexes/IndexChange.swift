internal import TidemarkEngine

/// The rows that come and go with the entries of a batch.
struct IndexChange: IndexUpdate {
  /// An object, and what its rows will be.
  private struct Object {
    let indexes: CollectionIndexes
    let state: CollectionIndexes.State
    let key: [UInt8]
    /// Nil where nobody knows them: then the object is marked.
    var rows: [DerivedRow]?
    /// Where only the rows are made anew: the entry that they are made from.
    var source: UInt64?
  }

  private let engine: Engine
  private let registry: IndexRegistry
  /// Stored values that the change was prepared from: they must be the newest still.
  private var premises: [(key: [UInt8], sequence: UInt64)] = []
  private var puts: [(key: [UInt8], value: [UInt8])] = []
  private var removals: [[UInt8]] = []
  /// Objects with rows of full-text indexes whose documents have no numbers yet, at their places.
  private var numberless:
    [(key: [UInt8], id: ArraySlice<UInt8>, rows: [DerivedRow], documents: [Int])] = []
  /// Rows that are new in indexes whose values are there once only, with what they lead to.
  private var claims:
    [(row: DerivedRow, id: ArraySlice<UInt8>, index: String, collection: String)] =
      []

  /// - Returns: nil when nothing follows from the batch.
  init?(
    _ batch: OperationBatch, _ members: IndexMembers, _ registry: IndexRegistry
  ) throws(TidemarkError) {
    engine = registry.engine
    self.registry = registry
    var objects: [Object] = []
    var places: [[UInt8]: Int] = [:]
    for (number, operation) in batch.operations.enumerated() {
      let key = batch.key(of: operation)
      guard let indexes = members.indexes(of: key), operation.kind != .touch,
        operation.kind != .record
      else { continue }
      var object = Object(
        indexes: indexes, state: indexes.now, key: [UInt8](copying: key), rows: [])
      if operation.kind == .evict {
        // It does nothing where the value is not the cached one that was meant.
        guard places[object.key] == nil,
          let slot = try Self.evicted(by: operation, batch, object.key, engine)
        else { continue }
        premises.append((object.key, slot))
      }
      if operation.kind == .put {
        object.rows = try Self.rows(of: object, batch, operation, number)
      }
      // The last one of several changes of an object counts.
      if let place = places[object.key] {
        objects[place] = object
      } else {
        places[object.key] = objects.count
        objects.append(object)
      }
    }
    for key in batch.rederived {
      guard places[key] == nil, let indexes = members.indexes(of: key.rawSpan) else { continue }
      var object = Object(indexes: indexes, state: indexes.now, key: key, rows: [])
      object.source = 0
      if let stored = try engine.reader.view().stored(key) {
        object.source = stored.sequence
        object.rows = Self.evaluated(object, stored.bytes, stored.version)
      }
      objects.append(object)
    }
    guard !objects.isEmpty else { return nil }
    for object in objects { try add(object) }
    // The lock must not be held when the index is asked for the first number.
    for row in numberless {
      for place in row.documents { try registry.texts(row.rows[place].index).prepareNumber() }
    }
  }

  /// The entry that an eviction gives up.
  private static func evicted(
    by operation: OperationBatch.Operation, _ batch: OperationBatch, _ key: [UInt8],
    _ engine: Engine
  ) throws(TidemarkError) -> UInt64? {
    guard let slot = try engine.reader.slot(ofKey: key.rawSpan), slot.isLiveCached else {
      return nil
    }
    if operation.condition >= 0, case .isNewest(let meant) = batch.conditions[operation.condition],
      meant != slot.sequence
    {
      return nil
    }
    return slot.sequence
  }

  private static func rows(
    of object: Object, _ batch: OperationBatch, _ operation: OperationBatch.Operation,
    _ number: Int
  ) throws(TidemarkError) -> [DerivedRow]? {
    if let known = batch.knownRows[number], known.schema == object.state.schema {
      return known.rows
    }
    guard object.state.evaluation != nil else { return nil }
    let attributes =
      operation.attributesLength > 0
      ? try? EntryAttributes(decoding: batch.attributes(of: operation)) : nil
    return evaluated(
      object, [UInt8](copying: batch.value(of: operation)), attributes?.schemaVersion ?? 0)
  }

  /// Nil where the object cannot be indexed: it may come from a peer, and is marked then.
  private static func evaluated(
    _ object: Object, _ value: [UInt8], _ version: UInt32
  ) -> [DerivedRow]? {
    guard let evaluation = object.state.evaluation else { return nil }
    let id = object.indexes.id(of: object.key)
    return try? object.state.rows(evaluation(value, version, id), id: id.count)
  }

  /// Works out what changes for an object.
  private mutating func add(_ object: Object) throws(TidemarkError) {
    let (indexes, state) = (object.indexes, object.state)
    let id = indexes.id(of: object.key)
    let rowsKey = IndexKeys.objects(ofCollection: state.catalog.number) + id
    // Such an object can be in no index, nor be marked.
    guard rowsKey.count <= Limits.keyBytes else { return }
    let stored = try engine.reader.withValue(forKey: rowsKey.rawSpan) {
      (value, sequence) throws(TidemarkError) in (try IndexKeys.decode(value), sequence)
    }
    premises.append((rowsKey, stored?.1 ?? 0))
    if let source = object.source { premises.append((object.key, source)) }
    replace(stored?.0 ?? [], by: object.rows ?? [], of: object, rowsKey)
    let mark = IndexKeys.marks(ofCollection: state.catalog.number) + id
    if PlantedBug.isOn(.unknownWriterUnmarked), object.rows == nil { return }
    if object.rows == nil {
      guard mark.count <= Limits.keyBytes else { return }
      indexes.change { state in
        state.mayHaveMarks = true
        state.marksMade += 1
      }
      puts.append((mark, []))
    } else if state.mayHaveMarks, mark.count <= Limits.keyBytes {
      removals.append(mark)
    }
  }

  private mutating func replace(
    _ before: [DerivedRow], by rows: [DerivedRow], of object: Object, _ rowsKey: [UInt8]
  ) {
    let id = object.indexes.id(of: object.key)
    let catalog = object.state.catalog
    var after = rows
    let documents = catalog.numberDocuments(of: &after, as: before)
    let (old, new) = (RowSet(before), RowSet(after))
    let former = PlantedBug.isOn(.formerRowsKept) ? [] : before.filter { !new.contains($0) }
    for row in former { removals.append(IndexKeys.row(row, id: id)) }
    var isChanged = !former.isEmpty || !documents.isEmpty
    for (place, row) in after.enumerated()
    where !old.contains(row) && !documents.contains(place) {
      isChanged = true
      puts.append((IndexKeys.row(row, id: id), row.value))
      if let index = catalog.rows.first(where: { $0.number == row.index }), index.isUnique,
        !IndexTerm.hasNothing(row.term)
      {
        claims.append((row, id, index.name, object.indexes.name))
      }
    }
    guard isChanged else { return }
    if after.isEmpty {
      removals.append(rowsKey)
    } else if !documents.isEmpty {
      numberless.append((rowsKey, id, after, documents))
    } else {
      puts.append((rowsKey, IndexKeys.encode(after)))
    }
  }

  /// Numbers documents of full-text indexes: under the lock, so that a reader who has seen one has
  /// seen all with smaller numbers.
  /// - Returns: false where the next number is not known any more.
  private func number(_ batch: inout OperationBatch) throws(TidemarkError) -> Bool {
    for (rowsKey, id, rows, documents) in numberless {
      var rows = rows
      for place in documents {
        guard let number = registry.texts(rows[place].index).nextDocument() else { return false }
        rows[place].term = SearchKeys.term(number) + rows[place].term
        let row = rows[place]
        try batch.addDerived(IndexKeys.row(row, id: id).rawSpan, row.value.rawSpan)
      }
      try batch.addDerived(rowsKey.rawSpan, IndexKeys.encode(rows).rawSpan)
    }
    return true
  }

  func add(to batch: inout OperationBatch) throws(TidemarkError) -> Bool {
    for premise in premises
    where try engine.reader.newestEntry(ofKey: premise.key.rawSpan) != premise.sequence {
      return false
    }
    if !batch.mayRepeatUnique { try checkClaims() }
    batch.beginDerived()
    for removal in removals { try batch.addDerived(removal.rawSpan, nil) }
    for put in puts { try batch.addDerived(put.key.rawSpan, put.value.rawSpan) }
    return try number(&batch)
  }

  private func checkClaims() throws(TidemarkError) {
    guard !claims.isEmpty else { return }
    let gone = Set(removals)
    var taken: [DerivedRow: ArraySlice<UInt8>] = [:]
    for claim in claims {
      let start = IndexKeys.rows(ofIndex: claim.row.index) + claim.row.term
      var isTaken = taken.updateValue(claim.id, forKey: claim.row).map { $0 != claim.id } ?? false
      // Rows that lead to others may all go in this batch.
      for key in try engine.reader.firstKeys(withPrefix: start, limit: 16) where !gone.contains(key)
      {
        let parts = try IndexKeys.parts(ofRow: key)
        if parts.term.elementsEqual(claim.row.term), parts.id != claim.id { isTaken = true }
      }
      guard !isTaken else {
        throw TidemarkError(
          .notUnique, "another object has this value of the unique index \(claim.index) already",
          object: ObjectPlace(
            collection: claim.collection, id: String(decoding: claim.id, as: UTF8.self),
            path: claim.index))
      }
    }
  }
}

extension IndexCatalog {
  /// Gives rows of full-text indexes the numbers that the same words had before.
  /// - Returns: the places of the rows that need a number.
  @discardableResult
  func numberDocuments(of rows: inout [DerivedRow], as before: [DerivedRow]) -> [Int] {
    guard self.rows.contains(where: \.isText) else { return [] }
    var documents: [Int] = []
    for (place, row) in rows.enumerated()
    where self.rows.contains(where: { $0.isText && $0.number == row.index }) {
      let known = before.first {
        $0.index == row.index && $0.term.suffix(8).elementsEqual(row.term)
      }
      if let known { rows[place].term = known.term } else { documents.append(place) }
    }
    return documents
  }
}

/// Rows that are looked for: most objects have few, for which a set would cost more than it saves.
private struct RowSet {
  private static let few = 16
  private let rows: [DerivedRow]
  private let set: Set<DerivedRow>?

  init(_ rows: [DerivedRow]) {
    self.rows = rows
    set = rows.count > Self.few ? Set(rows) : nil
  }

  func contains(_ row: DerivedRow) -> Bool { set?.contains(row) ?? rows.contains(row) }
}
