internal import TidemarkEngine

/// A property by which a query sorts its objects, and the direction. An index of the collection has
/// to have the property.
public struct ObjectOrder<Object: Sendable>: Sendable {
  /// The property and the direction, apart from the type of the objects.
  let planned: IndexLayout.Part

  /// Sorts a query's objects by a property, the smallest value first.
  public static func ascending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> ObjectOrder {
    ObjectOrder(planned: .init(target: .value(path), isDescending: false))
  }

  /// Sorts a query's objects by a property, the largest value first.
  public static func descending<Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> ObjectOrder {
    ObjectOrder(planned: .init(target: .value(path), isDescending: true))
  }

  /// Sorts a query's objects by a text property without regard to case and accents. The query needs
  /// an index part `.folded`.
  public static func folded(
    _ path: any KeyPath<Object, String> & Sendable, descending: Bool = false
  ) -> ObjectOrder {
    ObjectOrder(planned: .init(target: .folded(path), isDescending: descending))
  }
}

/// The place where a page of a query ended; pass it to the next call of the same query to go on.
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
