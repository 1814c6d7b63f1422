internal import TidemarkEngine

/// The way in which the objects of a collection become bytes, with their versions, and terms of
/// indexes.
struct ObjectCodec<Object: Sendable>: Sendable {
  let name: String
  let coding: CollectionCoding<Object>
  let schema: CollectionSchema<Object>
  /// The steps by the versions that they take.
  private let steps: [UInt32: Upcast]
  /// The bytes that an object's id takes at the end of its key.
  private let idBytes: @Sendable (Object) -> [UInt8]
  /// The facts by which a stored value becomes another object: what an index says of it holds for
  /// these only.
  let form: [UInt8]

  init(
    _ name: String, _ coding: CollectionCoding<Object>, _ schema: CollectionSchema<Object>,
    idBytes: @escaping @Sendable (Object) -> [UInt8]
  ) throws(TidemarkError) {
    self.name = name
    self.schema = schema
    self.idBytes = idBytes
    var form = ByteWriter()
    for upcast in schema.upcasts { form.u32(upcast.version) }
    if !schema.upcasts.isEmpty { form.u32(schema.version) }
    if schema.defaults.isEmpty {
      self.coding = coding
    } else {
      guard let withDefaults = coding.withDefaults,
        let defaults = try? JSONEncoding.encode(schema.defaults)
      else {
        throw TidemarkError(
          .invalidArgument,
          "defaults are values of JSON, for objects as JSON; those of collection \(name) are not")
      }
      self.coding = withDefaults(defaults)
      form.u64(XXH64.hash(defaults.rawSpan))
    }
    self.form = PlantedBug.isOn(.formNotInIndex) ? [] : form.bytes
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

  /// The terms of an object for the indexes in their order.
  func terms(of object: Object, id: ArraySlice<UInt8>) throws(TidemarkError) -> [[RowTerm]] {
    do {
      return try schema.indexes.map { try $0.terms(object) }
    } catch { throw describe(error, "cannot be indexed", id) }
  }

  func place(_ id: ArraySlice<UInt8>, _ path: [any CodingKey] = []) -> ObjectPlace {
    ObjectPlace(
      collection: name, id: String(decoding: id, as: UTF8.self),
      path: path.map(\.stringValue).joined(separator: "."))
  }

  /// The object of bytes.
  /// - Parameters:
  ///   - version: the schema that they were written with.
  ///   - id: the end of the key.
  func decode(
    _ bytes: [UInt8], version: UInt32, id: ArraySlice<UInt8>
  ) throws(TidemarkError) -> Object {
    do {
      let object = try coding.decode(try newest(bytes, version))
      let own = idBytes(object)
      // Anybody may have written it there, and two objects of one id are in no list.
      guard own.elementsEqual(id) else {
        throw OtherID(description: "its id is \(String(decoding: own, as: UTF8.self))")
      }
      return object
    } catch { throw describe(error, "cannot be read", id) }
  }

  private struct OtherID: Error, CustomStringConvertible {
    var description: String
  }

  /// The bytes in the form of this schema.
  private func newest(_ bytes: [UInt8], _ version: UInt32) throws -> [UInt8] {
    guard version < schema.version, !steps.isEmpty, let upcast = coding.upcast else { return bytes }
    return try upcast(bytes) { value in
      for step in version..<schema.version { try steps[step]?.change(&value) }
    }
  }

  /// The bytes of an object, of what this program knows.
  func encode(_ object: Object, id: ArraySlice<UInt8>) throws(TidemarkError) -> [UInt8] {
    do { return try coding.encode(object) } catch {
      throw describe(error, "cannot be written", id)
    }
  }

  /// The bytes of an object with what the value has besides whose place it takes.
  func carry(
    _ bytes: [UInt8], id: ArraySlice<UInt8>, over old: StoredObject?
  ) throws(TidemarkError) -> [UInt8] {
    guard let old, let carry = coding.carry else { return bytes }
    do { return try carry(try newest(old.bytes, old.version), bytes) } catch {
      throw describe(error, "cannot be written", id)
    }
  }

  private func describe(
    _ error: any Error, _ what: String, _ id: ArraySlice<UInt8>
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
    var words = context?.words ?? "\(error)"
    if case DecodingError.keyNotFound = error {
      words += "; CollectionSchema(defaults:) can give it"
    }
    return TidemarkError(
      .coding, "the object \(what): \(words)",
      object: place(id, context?.path ?? []), cause: error)
  }
}
