internal import ArgumentParser

extension Option where Value: Comparable & LosslessStringConvertible & Sendable {
  /// A number in a range. Its help has the default, which ArgumentParser does not print for options
  /// with a transform.
  init(wrappedValue: Value, _ range: ClosedRange<Value>, _ unit: String, _ help: String) {
    let text = "\(wrappedValue)"
    let number = text.hasSuffix(".0") ? text.dropLast(2) : text[...]
    self.init(
      wrappedValue: wrappedValue,
      help: ArgumentHelp("\(help) (default: \(number))", valueName: unit)
    ) { text in
      guard let value = Value(text), range.contains(value) else {
        throw ValidationError("it has to be \(range.lowerBound) to \(range.upperBound)")
      }
      return value
    }
  }
}

extension Duration {
  /// The whole seconds of a default.
  var seconds: Int { Int(components.seconds) }
}
