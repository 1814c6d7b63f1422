internal import ArgumentParser

/// Numbers of the command line.
///
/// Options that take one are parsed `.unconditional`: else -1 would count as an option of its own,
/// and the error be that a value is missing.
enum NumberText {
  static func positive(_ text: String) throws -> Int {
    guard let number = Int(text), number > 0 else {
      throw ValidationError("it must be a whole number of at least 1, not negative")
    }
    return number
  }

  static func natural<Number: UnsignedInteger & FixedWidthInteger>(
    _ text: String
  ) throws -> Number {
    guard let number = Number(text) else {
      throw ValidationError(
        "it must be a whole number, not negative, of at most \(Number.max)")
    }
    return number
  }
}
