internal import TidemarkEngine

/// The rules of a collection; of no use outside the library.
public final class CollectionCore<Object: Sendable, ID: CollectionID>: Sendable {
  let store: Store
  let name: String
  let prefix: [UInt8]
  let coding: CollectionCoding<Object>
  let schema: CollectionSchema<Object>
  let id: @Sendable (Object) -> ID
  let cache: ObjectCache<ID, Object>
  /// The steps by the versions that they take.
  private let steps: [UInt32: Upcast]

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
    self.coding = coding
    self.schema = schema
    self.id = id
    cache = ObjectCache(limit: schema.objectCacheBytes)
    steps = Dictionary(schema.upcasts.map { ($0.version, $0) }, uniquingKeysWith: { $1 })
    guard steps.isEmpty || coding.upcast != nil else {
      throw TidemarkError(
        .invalidArgument, "upcasts are for objects as JSON; collection \(name) has another coding")
    }
    for version in steps.keys where version >= schema.version {
      throw TidemarkError(
        .invalidArgument,
        "an upcast from version \(version) leads beyond version \(schema.version) of \(name)")
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

  private func place(_ key: [UInt8], _ path: [any CodingKey] = []) -> ObjectPlace {
    ObjectPlace(
      collection: name, id: String(decoding: key[prefix.count...], as: UTF8.self),
      path: path.map(\.stringValue).joined(separator: "."))
  }

  // MARK: Coding

  /// The object of a key's bytes.
  /// - Parameter version: the schema that they were written with.
  func decode(
    _ bytes: [UInt8], version: UInt32, ofKey key: [UInt8]
  ) throws(TidemarkError) -> Object {
    do {
      return try coding.decode(try newest(bytes, version))
    } catch { throw describe(error, "cannot be read", key) }
  }

  /// The bytes in the form of this schema.
  private func newest(_ bytes: [UInt8], _ version: UInt32) throws -> [UInt8] {
    guard version < schema.version, !steps.isEmpty, let upcast = coding.upcast else { return bytes }
    return try upcast(bytes) { value in
      for step in version..<schema.version { try steps[step]?.change(&value) }
    }
  }

  /// The bytes of an object that takes the place of a value.
  func encode(
    _ object: Object, ofKey key: [UInt8], over old: StoredObject?
  ) throws(TidemarkError) -> [UInt8] {
    do {
      let bytes = try coding.encode(object)
      guard let old, let carry = coding.carry else { return bytes }
      return try carry(try newest(old.bytes, old.version), bytes)
    } catch { throw describe(error, "cannot be written", key) }
  }

  private func describe(
    _ error: any Error, _ what: String, _ key: [UInt8]
  ) -> TidemarkError {
    if let error = error as? TidemarkError { return error }
    let context: (words: String, path: [any CodingKey])? =
      switch error {
      case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
        DecodingError.keyNotFound(_, let context), DecodingError.dataCorrupted(let context):
        (context.debugDescription, context.codingPath)
      case EncodingError.invalidValue(_, let context):
        (context.debugDescription, context.codingPath)
      default: nil
      }
    return TidemarkError(
      .coding, "the object \(what): \(context?.words ?? "\(error)")",
      object: place(key, context?.path ?? []), cause: error)
  }

  // MARK: Reading

  /// An object of the newest state, from the cache where that is still right.
  func newest(_ id: ID) throws(TidemarkError) -> Object? {
    let key = try key(id)
    let engine = store.engine
    guard let slot = try engine.slot(ofKey: key.rawSpan), !slot.isDeleted else { return nil }
    if let object = cache.object(id, at: slot.sequence, lineage: engine.lineage) { return object }
    let lineage = engine.lineage
    guard let stored = try stored(key, in: store.source) else { return nil }
    let object = try decode(stored.bytes, version: stored.version, ofKey: key)
    cache.keep(
      object, id, at: stored.sequence, bytes: stored.bytes.count, lineage: lineage)
    return object
  }

  /// The bytes of a key; nil when it is absent.
  /// - Parameter isToBeWritten: whether the version has to be known even if it is of no use here.
  func stored(
    _ key: [UInt8], in source: ReadSource, isToBeWritten: Bool = false
  ) throws(TidemarkError) -> StoredObject? {
    let engine = source.engine
    // The version stands in the log, which to look at takes longer than a hit in the hot cache.
    guard schema.version > 0 || source.view != nil || isToBeWritten else {
      return try engine.withValue(forKey: key.rawSpan) { (value, sequence) throws(TidemarkError) in
        StoredObject(bytes: [UInt8](copying: value), sequence: sequence, version: 0)
      }
    }
    let view = try source.pinned()
    guard let entry = try engine.entry(forKey: key.rawSpan, in: view) else { return nil }
    return try stored(entry, source)
  }

  func stored(
    _ entry: LogEntry, _ source: ReadSource
  ) throws(TidemarkError) -> StoredObject {
    let info = try source.engine.info(entry)
    return StoredObject(
      bytes: try source.value(of: info), sequence: info.sequence,
      version: info.attributes.schemaVersion)
  }
}
