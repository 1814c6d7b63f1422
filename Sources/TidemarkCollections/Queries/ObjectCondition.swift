internal import TidemarkEngine

/// A condition for a query: the objects to find, by their indexed properties and labels.
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

  /// The condition that every object meets, so that a query returns all objects.
  public static var everything: ObjectCondition { ObjectCondition(.all) }

  /// Objects whose labels meet a filter.
  public static func labels(_ filter: LabelFilter) -> ObjectCondition {
    ObjectCondition(.labels(filter))
  }

  /// Combines two conditions: objects must meet both.
  public static func && (a: ObjectCondition, b: ObjectCondition) -> ObjectCondition {
    ObjectCondition(.and([a.node, b.node]), a.refusal ?? b.refusal)
  }

  /// Combines two conditions: objects must meet at least one.
  public static func || (a: ObjectCondition, b: ObjectCondition) -> ObjectCondition {
    ObjectCondition(.or([a.node, b.node]), a.refusal ?? b.refusal)
  }

  /// Negates a condition: objects that do not meet it.
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

  /// Objects whose property equals one of the given values.
  public static func oneOf<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable, _ values: some Sequence<Value>
  ) -> ObjectCondition { ObjectCondition(.value(path), equals: values.map(\.indexTerm)) }

  /// Objects whose text begins with a prefix, compared byte by byte.
  public static func hasPrefix(
    _ path: any KeyPath<Object, String> & Sendable, _ prefix: String
  ) -> ObjectCondition {
    ObjectCondition(.value(path), [.beginning(with: IndexTerm.open(prefix.utf8))], of: [])
  }

  /// Objects whose property, a collection of values, contains a value. The condition needs an index
  /// `ObjectIndex(_:each:)`.
  public static func contains<Values: Swift.Collection & Sendable>(
    _ path: any KeyPath<Object, Values> & Sendable, _ value: Values.Element
  ) -> ObjectCondition where Values.Element: IndexValue {
    ObjectCondition(.each(path), equals: [value.indexTerm])
  }

  /// Objects whose text equals another without regard to case and accents. The condition needs an
  /// index part `.folded`.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, equals text: String
  ) -> ObjectCondition {
    ObjectCondition(.folded(path), equals: [FoldedText(text).indexTerm])
  }

  /// Objects whose text begins with a prefix, without regard to case and accents. The condition
  /// needs an index part `.folded`.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, hasPrefix text: String
  ) -> ObjectCondition {
    ObjectCondition(
      .folded(path), [.beginning(with: IndexTerm.open(FoldedText(text).bytes))], of: [])
  }

  /// Objects that an index lists under a value. Use it for indexes whose values a closure computes.
  /// - Parameters:
  ///   - name: the name of the index.
  ///   - value: the value to find.
  public static func index(_ name: String, equals value: some IndexValue) -> ObjectCondition {
    ObjectCondition(.index(name), equals: [value.indexTerm])
  }

  /// Objects that an index lists under a value in a range. Use it for indexes whose values a
  /// closure computes.
  /// - Parameters:
  ///   - name: the name of the index.
  ///   - range: the range of the values, bounds included.
  public static func index<Value: IndexValue>(
    _ name: String, in range: ClosedRange<Value>
  ) -> ObjectCondition {
    let (first, last) = (range.lowerBound.indexTerm, range.upperBound.indexTerm)
    return ObjectCondition(
      .index(name), [TermRange(lower: first.bytes, upper: TermRange.end(of: last.bytes))],
      of: [first, last], isOrder: true)
  }
}

/// Makes a condition: objects whose property equals a value.
public func == <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .equals(path, value) }

/// Makes a condition: objects whose property does not equal a value.
public func != <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { !.equals(path, value) }

/// Makes a condition: objects whose property is less than a value.
public func < <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .compares(path, with: value) { $0.upper = $1 } }

/// Makes a condition: objects whose property is less than or equal to a value.
public func <= <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .compares(path, with: value) { $0.upper = TermRange.end(of: $1) } }

/// Makes a condition: objects whose property is greater than a value.
public func > <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> {
  .compares(path, with: value) { $0.lower = TermRange.end(of: $1) ?? [0xFF] }
}

/// Makes a condition: objects whose property is greater than or equal to a value.
public func >= <Object: Sendable, Value: IndexValue>(
  path: any KeyPath<Object, Value> & Sendable, value: Value
) -> ObjectCondition<Object> { .compares(path, with: value) { $0.lower = $1 } }
