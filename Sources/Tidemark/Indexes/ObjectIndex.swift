internal import TidemarkEngine

/// A property of objects, or several, by which they are found and sorted.
///
/// ```swift
/// let indexes: [ObjectIndex<Note>] = [
///   ObjectIndex("section", \.section),
///   ObjectIndex("list", .descending(\.isPinned), .folded(\.title)),
///   ObjectIndex("tags", each: \.tags),
///   ObjectIndex("slug", unique: true, \.slug),
/// ]
/// ```
/// When what an index says of an object changes, such as the closure that computes it, its version
/// has to change, too: then the index is built anew.
public struct ObjectIndex<Object: Sendable>: Sendable {
  /// The name, of which a collection has one index.
  public let name: String
  /// The version of what the index says.
  public let version: UInt32
  /// Whether a value leads to one object at most.
  public let isUnique: Bool
  let parts: [IndexPart<Object>]
  /// The terms of an object, each of all parts.
  let terms: @Sendable (Object) throws -> [[UInt8]]

  /// An index of one property.
  /// - Parameters:
  ///   - name: the index's name.
  ///   - version: the version of what it says.
  ///   - unique: whether a value leads to one object at most.
  ///   - path: the property.
  public init<Value: IndexValue>(
    _ name: String, version: UInt32 = 1, unique: Bool = false,
    _ path: any KeyPath<Object, Value> & Sendable
  ) {
    self.init(name, version: version, unique: unique, parts: [.ascending(path)])
  }

  /// An index of up to four properties, one after the other, each in a direction of its own.
  public init(
    _ name: String, version: UInt32 = 1, unique: Bool = false, _ parts: IndexPart<Object>...
  ) {
    self.init(name, version: version, unique: unique, parts: parts)
  }

  private init(_ name: String, version: UInt32, unique: Bool, parts: [IndexPart<Object>]) {
    self.name = name
    self.version = version
    isUnique = unique
    self.parts = parts
    terms = { object in
      var term: [UInt8] = []
      for part in parts { term += try part.term(object) }
      return [term]
    }
  }

  /// An index of a property with several values, which leads to an object from each of them.
  public init<Values: Swift.Collection & Sendable>(
    _ name: String, version: UInt32 = 1, unique: Bool = false,
    each path: any KeyPath<Object, Values> & Sendable
  ) where Values.Element: IndexValue {
    self.name = name
    self.version = version
    isUnique = unique
    parts = [IndexPart(path: path, isDescending: false, kind: .each) { _ in [] }]
    terms = { object in Self.unique(object[keyPath: path].map(\.indexTerm)) }
  }

  /// An index of values that are computed: none, one or several of an object.
  public init<Value: IndexValue>(
    _ name: String, version: UInt32 = 1, unique: Bool = false,
    computed values: @escaping @Sendable (Object) throws -> [Value]
  ) {
    self.name = name
    self.version = version
    isUnique = unique
    parts = [IndexPart(path: nil, isDescending: false, kind: .each) { _ in [] }]
    terms = { object in Self.unique(try values(object).map(\.indexTerm)) }
  }

  /// The same terms, each once and in order.
  private static func unique(_ terms: [IndexTerm]) -> [[UInt8]] {
    Set(terms.map(\.bytes)).sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// The facts that make it another index when they change.
  var signature: [UInt8] {
    var writer = ByteWriter()
    writer.u32(version)
    writer.u8(isUnique ? 1 : 0)
    for part in parts {
      writer.u8(part.isDescending ? 1 : 0)
      writer.u8(part.kind.rawValue)
      if part.kind == .folded { writer.u32(FoldedText.unicodeVersion) }
    }
    return writer.bytes
  }
}

/// A part of an index: a property and its direction.
public struct IndexPart<Object: Sendable>: Sendable {
  enum Kind: UInt8, Sendable { case value, folded, each }

  let path: (any AnyKeyPath & Sendable)?
  let isDescending: Bool
  let kind: Kind
  let value: @Sendable (Object) throws -> [UInt8]

  init(
    path: (any AnyKeyPath & Sendable)?, isDescending: Bool, kind: Kind,
    value: @escaping @Sendable (Object) throws -> [UInt8]
  ) {
    self.path = path
    self.isDescending = isDescending
    self.kind = kind
    self.value = value
  }

  /// The part's bytes in the order of the index.
  func term(_ object: Object) throws -> [UInt8] {
    Self.directed(try value(object), isDescending)
  }

  static func directed(_ bytes: [UInt8], _ isDescending: Bool) -> [UInt8] {
    isDescending ? bytes.map { ~$0 } : bytes
  }

  /// A property, the smallest first.
  public static func ascending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> IndexPart {
    IndexPart(path: path, isDescending: false, kind: .value) { $0[keyPath: path].indexTerm.bytes }
  }

  /// A property, the largest first.
  public static func descending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> IndexPart {
    IndexPart(path: path, isDescending: true, kind: .value) { $0[keyPath: path].indexTerm.bytes }
  }

  /// A text without regard to case and accents, see ``FoldedText``.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, descending: Bool = false
  ) -> IndexPart {
    IndexPart(path: path, isDescending: descending, kind: .folded) { object in
      let text = object[keyPath: path]
      return IndexTerm.folded(FoldedText(text), of: text).bytes
    }
  }
}
