internal import TidemarkEngine

/// A property by which objects are sorted: an index has to have it.
public struct ObjectOrder<Object: Sendable>: Sendable {
  /// The property and the direction, apart from the type of the objects.
  let planned: IndexLayout.Part

  /// By a property, the smallest first.
  public static func ascending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> ObjectOrder {
    ObjectOrder(planned: .init(target: .value(path), isDescending: false))
  }

  /// By a property, the largest first.
  public static func descending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> ObjectOrder {
    ObjectOrder(planned: .init(target: .value(path), isDescending: true))
  }

  /// By a text without regard to case and accents.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, descending: Bool = false
  ) -> ObjectOrder {
    ObjectOrder(planned: .init(target: .folded(path), isDescending: descending))
  }
}

/// A place in the result of a query, behind which another query of the same kind goes on.
public struct ObjectCursor: Sendable, Hashable {
  let last: FoundObject
  let order: [IndexLayout.Part]
  /// Whether objects that are equal in the order come from the last id to the first.
  let isReversed: Bool

  /// - Throws: `invalidArgument` for a query in another order.
  func check(_ order: [IndexLayout.Part]) throws(TidemarkError) {
    guard self.order == order else {
      throw TidemarkError(
        .invalidArgument,
        "the cursor is of a query in another order; go on in the same one, or begin anew")
    }
  }
}
