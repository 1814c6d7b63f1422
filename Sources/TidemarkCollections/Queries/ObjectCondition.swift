internal import TidemarkEngine

/// A condition on objects, by what the indexes of their collection say of them.
///
/// ```swift
/// let games = try packages.find(\.section == "games" && \.size < 1_000)
/// let tagged = try notes.find(.contains(\.tags, "home") || .labels(.all("inbox")))
/// ```
/// Nil is neither less nor greater than a value, and what is no number is neither; both are other
/// values than any that is asked for. A comparison with `Double.nan`, and `<` and its like with
/// nil, are refused.
public struct ObjectCondition<Object: Sendable>: Sendable {
  private let node: ConditionNode
  /// Why it is refused; nil for most.
  private let refusal: String?

  private init(_ node: ConditionNode, _ refusal: String? = nil) {
    self.node = node
    self.refusal = refusal
  }

  /// The condition's structure.
  /// - Throws: `invalidArgument`.
  func checked() throws(TidemarkError) -> ConditionNode {
    if let refusal { throw TidemarkError(.invalidArgument, refusal) }
    return node.withoutNegations
  }

  /// The condition that every object meets.
  public static var everything: ObjectCondition { ObjectCondition(.all) }

  /// Objects with these labels.
  public static func labels(_ filter: LabelFilter) -> ObjectCondition {
    ObjectCondition(.labels(filter))
  }

  /// Objects that meet both conditions.
  public static func && (a: ObjectCondition, b: ObjectCondition) -> ObjectCondition {
    ObjectCondition(.and([a.node, b.node]), a.refusal ?? b.refusal)
  }

  /// Objects that meet one of the conditions, or both.
  public static func || (a: ObjectCondition, b: ObjectCondition) -> ObjectCondition {
    ObjectCondition(.or([a.node, b.node]), a.refusal ?? b.refusal)
  }

  /// Objects that do not meet the condition.
  public static prefix func ! (condition: ObjectCondition) -> ObjectCondition {
    ObjectCondition(.not(condition.node), condition.refusal)
  }
}

/// The part of an index that a condition or an order is about.
enum IndexTarget: Sendable, Hashable {
  enum Form: UInt8, Sendable { case value, folded, each }

  /// A property, and how the terms of an object of its type are made.
  case path(any AnyKeyPath & Sendable, Form, terms: @Sendable (Any) -> [[UInt8]])
  case index(String)

  static func value<Object, Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> IndexTarget {
    .path(path, .value) { ($0 as? Object).map { [$0[keyPath: path].indexTerm.bytes] } ?? [] }
  }

  static func folded<Object>(_ path: any KeyPath<Object, String> & Sendable) -> IndexTarget {
    .path(path, .folded) { object in
      guard let text = (object as? Object)?[keyPath: path] else { return [] }
      return [IndexTerm.folded(FoldedText(text), of: text).bytes]
    }
  }

  static func each<Object, Values: Swift.Collection & Sendable>(
    _ path: any KeyPath<Object, Values> & Sendable
  ) -> IndexTarget where Values.Element: IndexValue {
    .path(path, .each) { ($0 as? Object)?[keyPath: path].map(\.indexTerm.bytes) ?? [] }
  }

  static func == (a: IndexTarget, b: IndexTarget) -> Bool {
    switch (a, b) {
    case (.path(let a, let aForm, _), .path(let b, let bForm, _)):
      a as AnyKeyPath == b as AnyKeyPath && aForm == bForm
    case (.index(let a), .index(let b)): a == b
    default: false
    }
  }

  func hash(into hasher: inout Hasher) {
    switch self {
    case .path(let path, let form, _):
      hasher.combine(path as AnyKeyPath)
      hasher.combine(form)
    case .index(let name): hasher.combine(name)
    }
  }

  /// Whether each object has just one term.
  var isSingle: Bool {
    guard case .path(_, let form, _) = self else { return false }
    return form != .each
  }

  var isFolded: Bool { if case .path(_, .folded, _) = self { true } else { false } }

  /// The property and its type in words that stay the same from one start of a program to the next.
  ///
  /// The system knows the names of stored properties. Where a program has no symbols, computed ones
  /// have an address in its place, which is left out.
  var name: String {
    guard case .path(let path, _, _) = self else { return "" }
    let words = "\(path)".split(separator: " ").filter { !$0.hasPrefix("0x") }
    return "\(words.joined(separator: " ")): \(type(of: path as AnyKeyPath).valueType)"
  }

  /// The declaration that would serve it.
  var declaration: String {
    switch self {
    case .path(let path, .folded, _): "ObjectIndex(\"…\", .folded(\(path)))"
    case .path(let path, .each, _): "ObjectIndex(\"…\", each: \(path))"
    case .path(let path, .value, _): "ObjectIndex(\"…\", \(path))"
    case .index(let name): "an index named \(name)"
    }
  }
}

/// Terms from one on, up to another, in the order of bytes.
struct TermRange: Sendable, Hashable {
  var lower: [UInt8] = []
  /// Nil for no end.
  var upper: [UInt8]?

  /// All terms but those of nothing and of no number.
  static let something = TermRange(
    lower: end(of: IndexTerm.nothing.bytes) ?? [], upper: IndexTerm.noNumber.bytes)

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

  /// The complement of some ranges of index terms, as ranges.
  static func outside(_ ranges: [TermRange]) -> [TermRange] {
    var gaps: [TermRange] = []
    var lower: [UInt8] = []
    for range in ranges.sorted(by: { $0.lower.lexicographicallyPrecedes($1.lower) })
    where !range.isEmpty {
      if lower.lexicographicallyPrecedes(range.lower) {
        gaps.append(TermRange(lower: lower, upper: range.lower))
      }
      guard let upper = range.upper else { return gaps }
      if lower.lexicographicallyPrecedes(upper) { lower = upper }
    }
    return gaps + [TermRange(lower: lower)]
  }

  var isEmpty: Bool { upper.map { !lower.lexicographicallyPrecedes($0) } ?? false }

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
  /// - Parameters:
  ///   - values: what is asked for.
  ///   - isOrder: whether it is asked for what is less or greater.
  private init(
    _ target: IndexTarget, _ ranges: [TermRange], of values: [IndexTerm], isOrder: Bool = false
  ) {
    var refusal: String?
    if values.contains(.noNumber) {
      refusal = "a condition asks for what is no number, which is equal to nothing and in no order"
    } else if isOrder, values.contains(.nothing) {
      refusal = "a condition asks for what is less or greater than nil; ask for == nil or != nil"
    }
    self.init(.compare(target, ranges), refusal)
  }

  private init(_ target: IndexTarget, equals values: [IndexTerm]) {
    self.init(target, Set(values).map { .beginning(with: $0.bytes) }, of: values)
  }

  static func equals<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, _ value: Value
  ) -> ObjectCondition { ObjectCondition(.value(path), equals: [value.indexTerm]) }

  static func isLess<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, than value: Value, orEqual: Bool
  ) -> ObjectCondition {
    let term = value.indexTerm
    var range = TermRange.something
    range.upper = orEqual ? TermRange.end(of: term.bytes) : term.bytes
    return ObjectCondition(.value(path), [range], of: [term], isOrder: true)
  }

  static func isGreater<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, than value: Value, orEqual: Bool
  ) -> ObjectCondition {
    let term = value.indexTerm
    var range = TermRange.something
    range.lower = orEqual ? term.bytes : TermRange.end(of: term.bytes) ?? [0xFF]
    return ObjectCondition(.value(path), [range], of: [term], isOrder: true)
  }

  /// Objects that have some value of a property.
  static func isSomething<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> ObjectCondition { ObjectCondition(.value(path), [.something], of: []) }

  /// Objects whose property is one of some values.
  public static func oneOf<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, _ values: some Sequence<Value>
  ) -> ObjectCondition { ObjectCondition(.value(path), equals: values.map(\.indexTerm)) }

  /// Objects whose text begins with another, byte by byte.
  public static func hasPrefix(
    _ path: any KeyPath<Object, String> & Sendable, _ prefix: String
  ) -> ObjectCondition {
    ObjectCondition(.value(path), [.beginning(with: IndexTerm.open(prefix.utf8))], of: [])
  }

  /// Objects one of whose values is this: by an `ObjectIndex(each:)`.
  public static func contains<Values: Swift.Collection & Sendable>(
    _ path: any KeyPath<Object, Values> & Sendable, _ value: Values.Element
  ) -> ObjectCondition where Values.Element: IndexValue {
    ObjectCondition(.each(path), equals: [value.indexTerm])
  }

  /// Objects whose text is another without regard to case and accents: by a part `.folded`.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, equals text: String
  ) -> ObjectCondition {
    ObjectCondition(.folded(path), equals: [FoldedText(text).indexTerm])
  }

  /// Objects whose text begins with another without regard to case and accents.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, hasPrefix text: String
  ) -> ObjectCondition {
    ObjectCondition(
      .folded(path), [.beginning(with: IndexTerm.open(FoldedText(text).bytes))], of: [])
  }

  /// Objects that an index has under a value: for indexes of computed values.
  public static func index(_ name: String, equals value: some IndexValue) -> ObjectCondition {
    ObjectCondition(.index(name), equals: [value.indexTerm])
  }

  /// Objects that an index has under a value in a range.
  public static func index<Value: IndexValue>(
    _ name: String, in range: ClosedRange<Value>
  ) -> ObjectCondition {
    let (first, last) = (range.lowerBound.indexTerm, range.upperBound.indexTerm)
    return ObjectCondition(
      .index(name), [TermRange(lower: first.bytes, upper: TermRange.end(of: last.bytes))],
      of: [first, last], isOrder: true)
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
