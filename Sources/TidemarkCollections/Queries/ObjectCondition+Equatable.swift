extension ObjectCondition: Equatable {
  /// Whether both are written alike: `a && b` is another condition than `b && a`. All conditions
  /// that queries refuse are equal.
  public static func == (a: ObjectCondition, b: ObjectCondition) -> Bool {
    switch (try? a.checked(), try? b.checked()) {
    case (let a?, let b?): a.isWritten(like: b)
    case (nil, nil): true
    default: false
    }
  }
}

extension ObjectOrder: Equatable {
  /// Whether both sort by the same property in the same direction.
  public static func == (a: ObjectOrder, b: ObjectOrder) -> Bool { a.planned == b.planned }
}

extension ConditionNode {
  fileprivate func isWritten(like other: ConditionNode) -> Bool {
    switch (self, other) {
    case (.all, .all): true
    case (.compare(let a, let ranges), .compare(let b, let others)):
      a == b && Set(ranges) == Set(others)
    case (.labels(let a), .labels(let b)): a == b
    case (.and(let a), .and(let b)), (.or(let a), .or(let b)):
      a.count == b.count && zip(a, b).allSatisfy { $0.isWritten(like: $1) }
    case (.not(let a), .not(let b)): a.isWritten(like: b)
    default: false
    }
  }
}
