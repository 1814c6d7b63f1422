internal import TidemarkEngine
internal import TidemarkNDJSON

/// How the objects of a collection become bytes, and bytes objects.
public struct CollectionCoding<Object: Sendable>: Sendable {
  /// The bytes of an object.
  public let encode: @Sendable (Object) throws -> [UInt8]
  /// The object of bytes.
  public let decode: @Sendable ([UInt8]) throws -> Object
  /// The second bytes with what the first have besides and this program does not know.
  let carry: (@Sendable (_ old: [UInt8], _ new: [UInt8]) throws -> [UInt8])?
  /// Bytes of an older schema in the form of the newer one.
  let upcast: (@Sendable ([UInt8], (inout JSONValue) throws -> Void) throws -> [UInt8])?
  /// The same coding with values that stand in for fields that are not there: an object of JSON, by
  /// their paths.
  let withDefaults: (@Sendable ([UInt8]) -> CollectionCoding<Object>)?
}

extension CollectionCoding {
  /// A coding of your own.
  ///
  /// Equal objects should have equal bytes. Upcasts are for JSON: with a coding of your own,
  /// `decode` has to know older forms itself.
  /// - Parameters:
  ///   - encode: the bytes of an object.
  ///   - decode: the object of bytes that `encode` gave.
  public init(
    encode: @escaping @Sendable (Object) throws -> [UInt8],
    decode: @escaping @Sendable ([UInt8]) throws -> Object
  ) {
    self.init(encode: encode, decode: decode, carry: nil, upcast: nil, withDefaults: nil)
  }
}

extension CollectionCoding where Object: Codable {
  /// Objects as JSON, with their names in order, so that equal objects are equal bytes.
  ///
  /// Dates are RFC 3339 texts, `Data` is base64, a `URL` its address. Fields that the type never
  /// asks for, as those that a later version of the program has added, stay when an object is
  /// written again.
  public static var json: CollectionCoding { json(defaults: []) }

  private static func json(defaults: [UInt8]) -> CollectionCoding {
    CollectionCoding(
      encode: { try JSONEncoding.encode($0) },
      decode: { try JSONDecoding(JSONTape($0, defaults: defaults)).decode(Object.self) },
      carry: { old, new in
        guard let tape = try? JSONTape(old, defaults: defaults) else { return new }
        let written = try JSONTape(new)
        guard JSONCarry.mayHaveUnknown(tape, written) else { return new }
        let decoding = JSONDecoding(tape, tracks: true)
        // An object that cannot be read is replaced.
        guard (try? decoding.decode(Object.self)) != nil else { return new }
        return JSONCarry.carry(decoding, into: written)
      },
      upcast: { bytes, change in
        var value = JSONValue(try JSONTape(bytes))
        try change(&value)
        return try JSONEncoding.encode(value)
      },
      withDefaults: { json(defaults: $0) })
  }
}

extension CollectionCoding<[UInt8]> {
  /// Objects that are bytes already.
  public static var bytes: CollectionCoding { CollectionCoding(encode: { $0 }, decode: { $0 }) }
}
