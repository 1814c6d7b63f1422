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

  /// Objects whose property is less or greater than a value.
  /// - Parameter bound: narrows the range of all values by the value's term.
  static func compares<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, with value: Value,
    _ bound: (inout TermRange, _ term: [UInt8]) -> Void
  ) -> ObjectCondition {
    let term = value.indexTerm
    var range = TermRange.something
    bound(&range, term.bytes)
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
) -> ObjectCondition<Object> { .compares(path, with: value) { $0.upper = $1 } }

/// Objects whose property is a value or less.
public func <= <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .compares(path, with: value) { $0.upper = TermRange.end(of: $1) } }

/// Objects whose property is greater than a value.
public func > <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> {
  .compares(path, with: value) { $0.lower = TermRange.end(of: $1) ?? [0xFF] }
}

/// Objects whose property is a value or greater.
public func >= <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .compares(path, with: value) { $0.lower = $1 } }
