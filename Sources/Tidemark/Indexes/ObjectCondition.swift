internal import TidemarkEngine

/// A condition on objects, by what the indexes of their collection say of them.
///
/// ```swift
/// let games = try packages.find(\.section == "games" && \.size < 1_000)
/// let tagged = try notes.find(.contains(\.tags, "home") || .labels(.all("inbox")))
/// ```
public struct ObjectCondition<Object: Sendable>: Sendable {
  let node: ConditionNode

  init(_ node: ConditionNode) { self.node = node }

  /// The condition that every object meets.
  public static var everything: ObjectCondition { ObjectCondition(.all) }

  /// Objects with these labels.
  public static func labels(_ filter: LabelFilter) -> ObjectCondition {
    ObjectCondition(.labels(filter))
  }

  /// Objects that meet both conditions.
  public static func && (a: ObjectCondition, b: ObjectCondition) -> ObjectCondition {
    ObjectCondition(.and([a.node, b.node]))
  }

  /// Objects that meet one of the conditions, or both.
  public static func || (a: ObjectCondition, b: ObjectCondition) -> ObjectCondition {
    ObjectCondition(.or([a.node, b.node]))
  }

  /// Objects that do not meet the condition.
  public static prefix func ! (condition: ObjectCondition) -> ObjectCondition {
    ObjectCondition(.not(condition.node))
  }
}

/// The part of an index that a condition or an order is about.
enum IndexTarget: Sendable, Hashable {
  case path(any AnyKeyPath & Sendable, folded: Bool, each: Bool)
  case index(String)

  static func == (a: IndexTarget, b: IndexTarget) -> Bool {
    switch (a, b) {
    case (.path(let a, let aFolded, let aEach), .path(let b, let bFolded, let bEach)):
      a as AnyKeyPath == b as AnyKeyPath && aFolded == bFolded && aEach == bEach
    case (.index(let a), .index(let b)): a == b
    default: false
    }
  }

  func hash(into hasher: inout Hasher) {
    switch self {
    case .path(let path, let folded, let each):
      hasher.combine(path as AnyKeyPath)
      hasher.combine(folded)
      hasher.combine(each)
    case .index(let name): hasher.combine(name)
    }
  }

  /// The declaration that would serve it.
  var declaration: String {
    switch self {
    case .path(let path, folded: true, each: _): "ObjectIndex(\"…\", .folded(\(path)))"
    case .path(let path, folded: false, each: true): "ObjectIndex(\"…\", each: \(path))"
    case .path(let path, folded: false, each: false): "ObjectIndex(\"…\", \(path))"
    case .index(let name): "an index named \(name)"
    }
  }
}

/// Terms from one on, up to another, in the order of bytes.
struct TermRange: Sendable, Hashable {
  var lower: [UInt8] = []
  /// Nil for no end.
  var upper: [UInt8]?

  /// All terms that begin with some bytes.
  static func beginning(with bytes: [UInt8]) -> TermRange {
    TermRange(lower: bytes, upper: end(of: bytes))
  }

  /// The first bytes behind all that begin with some.
  static func end(of bytes: [UInt8]) -> [UInt8]? {
    var next = bytes
    while let last = next.popLast() {
      if last < 0xFF { return next + [last + 1] }
    }
    return nil
  }

  func contains(_ term: some Sequence<UInt8>) -> Bool {
    !term.lexicographicallyPrecedes(lower)
      && (upper.map { term.lexicographicallyPrecedes($0) } ?? true)
  }

  /// The same terms where all bytes are turned.
  var inverted: TermRange {
    TermRange(
      lower: upper.flatMap { Self.end(of: $0.map { ~$0 }) } ?? [],
      upper: lower.isEmpty ? nil : Self.end(of: lower.map { ~$0 }))
  }

  /// Whether it is the range of one value: of all that begin with a whole term.
  var isOneTerm: Bool {
    upper == Self.end(of: lower)
      && IndexTerm.length(of: lower[...], isInverted: false) == lower.count
  }
}

extension ObjectCondition {
  private static func compare<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, _ range: TermRange
  ) -> ObjectCondition {
    ObjectCondition(.compare(.path(path, folded: false, each: false), [range]))
  }

  static func equals<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, _ value: Value
  ) -> ObjectCondition {
    compare(path, .beginning(with: value.indexTerm.bytes))
  }

  static func isLess<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, than value: Value, orEqual: Bool
  ) -> ObjectCondition {
    let term = value.indexTerm.bytes
    return compare(path, TermRange(upper: orEqual ? TermRange.end(of: term) : term))
  }

  static func isGreater<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, than value: Value, orEqual: Bool
  ) -> ObjectCondition {
    let term = value.indexTerm.bytes
    return compare(path, TermRange(lower: orEqual ? term : TermRange.end(of: term) ?? [0xFF]))
  }

  /// Objects whose property is one of some values.
  public static func oneOf<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, _ values: some Sequence<Value>
  ) -> ObjectCondition {
    ObjectCondition(
      .compare(
        .path(path, folded: false, each: false),
        Set(values.map(\.indexTerm.bytes)).map { .beginning(with: $0) }))
  }

  /// Objects whose text begins with another, byte by byte.
  public static func hasPrefix(
    _ path: any KeyPath<Object, String> & Sendable, _ prefix: String
  ) -> ObjectCondition {
    compare(path, .beginning(with: IndexTerm.open(prefix.utf8)))
  }

  /// Objects one of whose values is this: by an `ObjectIndex(each:)`.
  public static func contains<Values: Swift.Collection & Sendable>(
    _ path: any KeyPath<Object, Values> & Sendable, _ value: Values.Element
  ) -> ObjectCondition where Values.Element: IndexValue {
    ObjectCondition(
      .compare(
        .path(path, folded: false, each: true), [.beginning(with: value.indexTerm.bytes)]))
  }

  /// Objects whose text is another without regard to case and accents: by a part `.folded`.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, equals text: String
  ) -> ObjectCondition {
    ObjectCondition(
      .compare(
        .path(path, folded: true, each: false),
        [.beginning(with: FoldedText(text).indexTerm.bytes)]))
  }

  /// Objects whose text begins with another without regard to case and accents.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, hasPrefix text: String
  ) -> ObjectCondition {
    ObjectCondition(
      .compare(
        .path(path, folded: true, each: false),
        [.beginning(with: IndexTerm.open(FoldedText(text).bytes))]))
  }

  /// Objects that an index has under a value: for indexes of computed values.
  public static func index(_ name: String, equals value: some IndexValue) -> ObjectCondition {
    ObjectCondition(.compare(.index(name), [.beginning(with: value.indexTerm.bytes)]))
  }

  /// Objects that an index has under a value in a range.
  public static func index<Value: IndexValue>(
    _ name: String, in range: ClosedRange<Value>
  ) -> ObjectCondition {
    ObjectCondition(
      .compare(
        .index(name),
        [
          TermRange(
            lower: range.lowerBound.indexTerm.bytes,
            upper: TermRange.end(of: range.upperBound.indexTerm.bytes))
        ]))
  }
}

/// Objects whose property is a value.
public func == <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .equals(path, value) }

/// Objects whose property is another value.
public func != <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { !.equals(path, value) }

/// Objects whose property is less than a value.
public func < <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .isLess(path, than: value, orEqual: false) }

/// Objects whose property is a value or less.
public func <= <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .isLess(path, than: value, orEqual: true) }

/// Objects whose property is greater than a value.
public func > <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .isGreater(path, than: value, orEqual: false) }

/// Objects whose property is a value or greater.
public func >= <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .isGreater(path, than: value, orEqual: true) }
