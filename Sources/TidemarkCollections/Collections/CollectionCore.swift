internal import TidemarkEngine

/// An implementation detail of the library's own extensions.
@_documentation(visibility: internal)
public final class CollectionCore<Object: Sendable, ID: CollectionID>: Sendable {
  let store: Store
  let name: String
  let prefix: [UInt8]
  let codec: ObjectCodec<Object>
  let id: @Sendable (Object) -> ID
  /// Its number in the cache of objects.
  let owner: UInt32
  private let declared = Lock<(indexes: CollectionIndexes, schema: Int)?>(nil)

  /// Its indexes; nil where it has none.
  var indexes: CollectionIndexes? { declared.withLock { $0?.indexes } }

  /// The state of its indexes as this collection has declared them; nil where somebody else has
  /// declared others since.
  var ownIndexes: CollectionIndexes.State? {
    guard let (indexes, schema) = declared.withLock({ $0 }) else { return nil }
    let state = indexes.now
    return state.schema == schema && state.evaluation != nil ? state : nil
  }

  init(
    _ store: Store, _ name: String, _ coding: CollectionCoding<Object>,
    _ schema: CollectionSchema<Object>,
    _ id: @escaping @Sendable (Object) -> ID
  ) throws(TidemarkError) {
    let bytes = Array(name.utf8)
    guard !bytes.isEmpty, bytes.count <= 255, !bytes.contains(UInt8(ascii: "/")) else {
      throw TidemarkError(
        .invalidArgument, "a collection's name has 1 to 255 bytes and no /; \"\(name)\" is none")
    }
    let keys = bytes + [UInt8(ascii: "/")]
    try ReservedKeys.refuse(keys.rawSpan)
    self.store = store
    self.name = name
    prefix = keys
    self.id = id
    codec = try ObjectCodec(name, coding, schema) { id($0).keyBytes }
    owner = store.engine.reader.objects.nextOwner()
  }

  var schema: CollectionSchema<Object> { codec.schema }

  // MARK: Indexes

  /// Declares the indexes of the schema.
  func declare() throws(TidemarkError) {
    guard !schema.indexes.isEmpty else { return }
    for index in schema.indexes where !(1...4).contains(index.parts.count) {
      throw TidemarkError(
        .invalidArgument, "index \(index.name) has \(index.parts.count) parts; it has one to four")
    }
    let rows = schema.indexes.map {
      IndexCatalog.Row(
        name: $0.name, number: 0, signature: $0.signature + codec.form, isUnique: $0.isUnique,
        isText: $0.isText, isComplete: false)
    }
    // A store that is open for reading has the indexes that a writer has declared.
    if store.engine.configuration.access == .readOnly {
      let known = try store.indexes.members().all.first { $0.name == name }
      return declared.withLock { $0 = known.map { ($0, -1) } }
    }
    let indexes = try store.indexes.declare(name, rows, usesThread: store.usesThreads) {
      [codec] (value, version, id) throws(TidemarkError) in
      try codec.terms(of: codec.decode(value, version: version, id: id), id: id)
    }
    declared.withLock { $0 = indexes }
  }

  /// The indexes of the schema, with what is stored of them.
  func layouts(_ catalog: IndexCatalog?) -> [IndexLayout] {
    guard let catalog else { return [] }
    return schema.indexes.compactMap { index in
      let signature = index.signature + codec.form
      return catalog.rows.first { $0.name == index.name && $0.signature == signature }
        .map { IndexLayout(index, $0) }
    }
  }

  // MARK: Keys

  /// The key of an object.
  /// - Throws: `invalidArgument` for an id without bytes.
  func key(_ id: ID) throws(TidemarkError) -> [UInt8] {
    let bytes = id.keyBytes
    guard !bytes.isEmpty else {
      throw TidemarkError(
        .invalidArgument, "the id of an object has no bytes",
        object: ObjectPlace(collection: name))
    }
    return prefix + bytes
  }

  /// The id that a key ends with; nil for a key that no object of the collection can have.
  func id(ofKey key: [UInt8]) -> ID? { ID.id(ofKeyBytes: key[prefix.count...]) }

  // MARK: Reading

  /// Reads objects of a state.
  /// - Parameter view: the state; nil for the newest.
  func fetch(_ view: EngineView?) -> ObjectFetch {
    ObjectFetch(
      store: store, prefix: prefix, owner: owner, view: view,
      needsVersions: schema.version > 0,
      objectBytes: MemoryLayout<Object>.size,
      decode: { [codec] (value, version, id) throws(TidemarkError) in
        ObjectBox(try codec.decode([UInt8](copying: value), version: version, id: id[...]))
      })
  }

  /// An object as a state has it.
  /// - Parameters:
  ///   - view: the state; nil for the newest.
  ///   - isUse: whether the object was asked for by its id: of a cached one that is a use.
  func object(
    _ id: ID, in view: EngineView? = nil, isUse: Bool = false
  ) throws(TidemarkError) -> Object? {
    let key = try key(id)
    let engine = store.engine
    try engine.reader.checkReadable()
    var row =
      view == nil
      ? engine.reader.objects.newest(engine.reader.objectTicket(key.rawSpan, owner: owner)) : nil
    if row == nil {
      switch try fetch(view).fetch([Array(key[prefix.count...])])[0] {
      case .object(let read): row = read
      case .absent: return nil
      case .failed(let error): throw error
      }
    }
    guard let row else { return nil }
    if isUse, row.isCached { store.caches.noteUse(of: key, row.sequence) }
    return (row.box as? ObjectBox<Object>)?.object
  }

  /// The bytes of a key; nil when it is absent.
  /// - Parameter isToBeWritten: whether the version has to be known even if it is of no use here.
  func stored(
    _ key: [UInt8], in source: ReadSource, isToBeWritten: Bool = false
  ) throws(TidemarkError) -> StoredObject? {
    let engine = source.engine
    // The version stands in the log, which to look at takes longer than a hit in the hot cache.
    guard schema.version > 0 || source.view != nil || isToBeWritten else {
      return try engine.reader.withValue(forKey: key.rawSpan) {
        (value, sequence) throws(TidemarkError) in
        StoredObject(bytes: [UInt8](copying: value), sequence: sequence, version: 0)
      }
    }
    return try source.pinned().stored(key)
  }
}
