/// A property by which objects are sorted: an index has to have it.
public struct ObjectOrder<Object: Sendable>: Sendable {
  let target: IndexTarget
  let isDescending: Bool

  /// By a property, the smallest first.
  public static func ascending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> ObjectOrder {
    ObjectOrder(target: .path(path, folded: false, each: false), isDescending: false)
  }

  /// By a property, the largest first.
  public static func descending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> ObjectOrder {
    ObjectOrder(target: .path(path, folded: false, each: false), isDescending: true)
  }

  /// By a text without regard to case and accents.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, descending: Bool = false
  ) -> ObjectOrder {
    ObjectOrder(target: .path(path, folded: true, each: false), isDescending: descending)
  }
}

/// A place in the result of a query, behind which another query of the same kind goes on.
public struct ObjectCursor: Sendable, Hashable {
  /// The terms of what is sorted by, as the query's order has them.
  var terms: [UInt8]
  var id: [UInt8]
}
