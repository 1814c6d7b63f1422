internal import TidemarkEngine
internal import TidemarkNDJSON

/// The way in which a collection turns objects into bytes and bytes into objects.
public struct CollectionCoding<Object: Sendable>: Sendable {
  /// Makes the bytes that are stored for an object.
  public let encode: @Sendable (Object) throws -> [UInt8]
  /// Makes an object from the bytes that ``encode`` made.
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
  /// Creates a coding of your own, in place of JSON.
  ///
  /// Equal objects should have equal bytes. Upcasts work with JSON only: with a coding of your own,
  /// `decode` must read older forms itself.
  /// - Parameters:
  ///   - encode: makes the bytes that are stored for an object.
  ///   - decode: makes an object from the bytes that `encode` made.
  public init(
    encode: @escaping @Sendable (Object) throws -> [UInt8],
    decode: @escaping @Sendable ([UInt8]) throws -> Object
  ) {
    self.init(encode: encode, decode: decode, carry: nil, upcast: nil, withDefaults: nil)
  }
}

extension CollectionCoding where Object: Codable {
  /// Stores objects as JSON, with sorted names, so that equal objects have equal bytes.
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
  /// Stores objects that are `[UInt8]` already, unchanged.
  public static var bytes: CollectionCoding { CollectionCoding(encode: { $0 }, decode: { $0 }) }
}
