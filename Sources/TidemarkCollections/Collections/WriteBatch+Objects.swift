public import TidemarkEngine

extension WriteBatch {
  /// Adds a put of an object, which may be of any of a store's collections.
  ///
  /// ```swift
  /// try await store.write { batch in
  ///   try batch.put(note, in: notes)
  ///   try batch.delete("17", in: todos)
  /// }
  /// ```
  /// Fields of the object before that this program does not know stay as they are when it is added.
  /// - Parameters:
  ///   - object: the object.
  ///   - collection: its collection.
  ///   - options: the caller's time, priority and the like.
  ///   - condition: the state in which the object must be before the batch.
  /// - Throws: `coding`, `invalidArgument` or `limitExceeded`; the batch stays as it was.
  public mutating func put<Object, ID>(
    _ object: Object, in collection: ObjectCollection<Object, ID>,
    options: PutOptions = PutOptions(),
    if condition: WriteCondition? = nil
  ) throws(TidemarkError) {
    let core = collection.core
    let key = try core.key(core.id(object))
    try add(object, key, over: core.replaced(key).object, if: condition, options, core)
  }

  /// Adds a delete of the object with an id; the commit changes nothing when there is none.
  /// - Parameters:
  ///   - id: the object's id.
  ///   - collection: the collection of the object.
  ///   - condition: the state in which the object must be before the batch.
  public mutating func delete<Object, ID>(
    _ id: ID, in collection: ObjectCollection<Object, ID>, if condition: WriteCondition? = nil
  ) throws(TidemarkError) {
    try delete(collection.core.key(id), if: condition)
  }

  /// Adds an object that takes the place of what was read.
  /// - Parameter encoded: its bytes, where they are known.
  mutating func add<Object, ID>(
    _ object: Object, _ key: [UInt8], over old: StoredObject?, if condition: WriteCondition?,
    _ options: PutOptions, _ core: CollectionCore<Object, ID>, encoded: [UInt8]? = nil
  ) throws(TidemarkError) {
    let id = key[core.prefix.count...]
    let known = if let encoded { encoded } else { try core.codec.encode(object, id: id) }
    let bytes = try core.codec.carry(known, id: id, over: old)
    var options = options
    options.schemaVersion = core.schema.version
    // An object keeps a newer version, unless this program cannot read it and replaces all of it.
    if let old, old.version > core.schema.version,
      (try? core.codec.decode(old.bytes, version: old.version, id: id)) != nil
    {
      options.schemaVersion = old.version
    }
    let rows = try core.knownRows(of: object, id: id)
    try put(
      key, bytes, labels: core.schema.labels(object), options: options, if: condition)
    if let rows { operations.knownRows[operations.count - 1] = rows }
  }
}

extension CollectionCore {
  /// The rows of an object for its indexes; nil where it has none.
  func knownRows(
    of object: Object, id: ArraySlice<UInt8>
  ) throws(TidemarkError) -> KnownRows? {
    guard let state = ownIndexes else { return nil }
    return KnownRows(
      schema: state.schema, rows: try state.rows(codec.terms(of: object, id: id), id: id.count))
  }

  /// The object that one to be written takes the place of, and the condition that it still does;
  /// neither where nothing of it stays.
  func replaced(
    _ key: [UInt8]
  ) throws(TidemarkError) -> (object: StoredObject?, condition: WriteCondition?) {
    guard codec.coding.carry != nil else { return (nil, nil) }
    // Most objects that are written are new, which the index alone knows.
    guard try store.engine.reader.newestEntry(ofKey: key.rawSpan) > 0,
      let old = try stored(key, in: store.source, isToBeWritten: true)
    else { return (nil, .absent) }
    return (old, .sequence(old.sequence))
  }
}
