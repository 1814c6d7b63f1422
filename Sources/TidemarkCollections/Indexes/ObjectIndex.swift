internal import TidemarkEngine

/// An index of a collection: one or several properties by which queries find and sort objects.
///
/// ```swift
/// let indexes: [ObjectIndex<Note>] = [
///   ObjectIndex("section", \.section),
///   ObjectIndex("list", .descending(\.isPinned), .folded(\.title)),
///   ObjectIndex("tags", each: \.tags),
///   ObjectIndex("slug", unique: true, \.slug),
/// ]
/// ```
/// An index whose properties, order or rules are others than before is built anew, and so is one
/// that says something else of one of the first or last objects of its collection. A closure whose
/// change shows in other objects only needs another version.
public struct ObjectIndex<Object: Sendable>: Sendable {
  /// The index's name, which is unique in its collection. Search and
  /// ``ObjectCondition/index(_:equals:)`` name the index by it.
  public let name: String
  /// The version of the index. Increase it when a closure of the index computes other values, so
  /// that the store builds the index anew.
  public let version: UInt32
  /// Whether the index is unique: a write that would give one value to two objects fails with
  /// `notUnique`.
  public let isUnique: Bool
  let parts: [IndexPart<Object>]
  /// The terms of an object, each of all parts.
  let terms: @Sendable (Object) throws -> [RowTerm]
  /// The facts that make it another index when they change.
  let signature: [UInt8]

  private init(
    _ name: String, _ version: UInt32, _ isUnique: Bool, _ parts: [IndexPart<Object>],
    terms: @escaping @Sendable (Object) throws -> [RowTerm]
  ) {
    self.name = name
    self.version = version
    self.isUnique = isUnique
    self.parts = parts
    self.terms = terms
    var writer = ByteWriter()
    writer.u8(IndexTerm.version)
    writer.u32(version)
    writer.u8(isUnique ? 1 : 0)
    for part in parts {
      writer.u8(part.isDescending ? 1 : 0)
      writer.u8(part.kind.rawValue)
      writer.blob(Array((part.target?.name ?? "").utf8))
      if part.kind == .folded || part.kind == .text { writer.u32(FoldedText.unicodeVersion) }
      if part.kind == .text { writer.u8(WordSplitter.version) }
    }
    signature = writer.bytes
  }

  /// Creates an index of one property, in ascending order.
  /// - Parameters:
  ///   - name: the index's name, unique in its collection.
  ///   - version: the version of the index; with another one the store builds it anew.
  ///   - unique: whether one value leads to one object at most; a write that breaks this throws
  ///     `notUnique`.
  ///   - path: the property.
  public init<Value: IndexValue>(
    _ name: String, version: UInt32 = 1, unique: Bool = false,
    _ path: any KeyPath<Object, Value> & Sendable
  ) {
    self.init(name, version: version, unique: unique, .ascending(path))
  }

  /// Creates an index of up to four properties, each with its own direction.
  /// - Parameters:
  ///   - name: the index's name, unique in its collection.
  ///   - version: the version of the index; with another one the store builds it anew.
  ///   - unique: whether one combination of values leads to one object at most.
  ///   - parts: the properties in the order of sorting, such as `.descending(\.time)`.
  public init(
    _ name: String, version: UInt32 = 1, unique: Bool = false, _ parts: IndexPart<Object>...
  ) {
    self.init(name, version, unique, parts) { object in
      var term: [UInt8] = []
      for part in parts { term += try part.term(object) }
      return [RowTerm(bytes: term)]
    }
  }

  /// Creates an index of a property with several values, such as tags. Each of the values leads to
  /// the object.
  /// - Parameters:
  ///   - name: the index's name, unique in its collection.
  ///   - version: the version of the index; with another one the store builds it anew.
  ///   - unique: whether one value leads to one object at most.
  ///   - path: the property, a collection of values.
  public init<Values: Swift.Collection & Sendable>(
    _ name: String, version: UInt32 = 1, unique: Bool = false,
    each path: any KeyPath<Object, Values> & Sendable
  ) where Values.Element: IndexValue {
    self.init(name, version, unique, [IndexPart(target: .each(path), kind: .each)]) { object in
      Self.unique(object[keyPath: path].map(\.indexTerm))
    }
  }

  /// Creates an index of values that a closure computes for each object.
  /// - Parameters:
  ///   - name: the index's name, unique in its collection.
  ///   - version: the version of the index; increase it when the closure computes other values.
  ///   - unique: whether one value leads to one object at most.
  ///   - values: computes the values of an object: none, one or several.
  public init<Value: IndexValue>(
    _ name: String, version: UInt32 = 1, unique: Bool = false,
    computed values: @escaping @Sendable (Object) throws -> [Value]
  ) {
    self.init(name, version, unique, [IndexPart(target: nil, kind: .each)]) { object in
      Self.unique(try values(object).map(\.indexTerm))
    }
  }

  /// Creates a full-text index of several texts of an object, for
  /// ``ObjectCollection/search(_:_:where:limit:unreadable:)``.
  ///
  /// ```swift
  /// ObjectIndex(text: "text", version: 1) { [($0.title, 3), ($0.body, 1)] }
  /// ```
  /// - Parameters:
  ///   - name: the index's name.
  ///   - version: the version of what it says.
  ///   - fields: the texts, each with a weight of 1 or more by which its words count.
  public init(
    text name: String, version: UInt32 = 1,
    fields: @escaping @Sendable (Object) throws -> [(text: String, weight: Int)]
  ) {
    self.init(name, version, false, [IndexPart(target: nil, kind: .text)]) { object in
      let vector = WordVector(
        try fields(object).map { (text: $0.text, weight: min(max(1, $0.weight), 1_000)) })
      return vector.words.isEmpty ? [] : [RowTerm(words: vector.encoded)]
    }
  }

  /// Creates a full-text index of one text property.
  /// - Parameters:
  ///   - name: the index's name, unique in its collection.
  ///   - version: the version of the index; with another one the store builds it anew.
  ///   - path: the text property.
  public init(
    text name: String, version: UInt32 = 1, _ path: any KeyPath<Object, String> & Sendable
  ) {
    self.init(text: name, version: version) { [($0[keyPath: path], 1)] }
  }

  /// Whether it is a full-text index.
  var isText: Bool { parts[0].kind == .text }

  /// The same terms, each once and in order.
  private static func unique(_ terms: [IndexTerm]) -> [RowTerm] {
    Set(terms.map(\.bytes)).sorted { $0.lexicographicallyPrecedes($1) }
      .map { RowTerm(bytes: $0) }
  }
}

/// One property of an ``ObjectIndex`` and the direction in which the index sorts it.
public struct IndexPart<Object: Sendable>: Sendable {
  enum Kind: UInt8, Sendable { case value, folded, each, text }

  /// The property; nil where the index computes its values.
  let target: IndexTarget?
  var isDescending = false
  let kind: Kind
  var value: @Sendable (Object) throws -> [UInt8] = { _ in [] }

  /// The part's bytes in the order of the index.
  func term(_ object: Object) throws -> [UInt8] {
    try value(object).directed(isDescending)
  }

  private static func value<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, isDescending: Bool
  ) -> IndexPart {
    IndexPart(target: .value(path), isDescending: isDescending, kind: .value) {
      $0[keyPath: path].indexTerm.bytes
    }
  }

  /// An index part that sorts by a property, the smallest value first.
  public static func ascending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> IndexPart { value(path, isDescending: false) }

  /// An index part that sorts by a property, the largest value first.
  public static func descending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> IndexPart { value(path, isDescending: true) }

  /// An index part that sorts a text property without regard to case and accents; see
  /// ``FoldedText``.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, descending: Bool = false
  ) -> IndexPart {
    IndexPart(target: .folded(path), isDescending: descending, kind: .folded) { object in
      let text = object[keyPath: path]
      return IndexTerm.folded(FoldedText(text), of: text).bytes
    }
  }
}

/// A term of an object, and the value of its row.
struct RowTerm: Sendable {
  var bytes: [UInt8]
  var value: [UInt8] = []
}

extension RowTerm {
  /// The words of a text: the term is a hash of them, before which the document's number comes when
  /// they are committed.
  init(words: [UInt8]) {
    var writer = ByteWriter()
    writer.u64(XXH64.hash(words.rawSpan))
    self.init(bytes: writer.bytes, value: words)
  }
}
