import Foundation

/// One figure of one engine in one run; a child prints each as a line of JSON.
struct Measure: Codable {
  /// The row that it belongs to.
  var row: String
  var value: Double
  /// Microseconds of processor time an operation, of all threads.
  var processor: Double?
  /// Further figures, by name.
  var more: [String: Double]?

  init(_ row: String, _ value: Double, processor: Double? = nil, more: [String: Double]? = nil) {
    self.row = row
    self.value = value
    self.processor = processor
    self.more = more
  }

  /// A rate in thousands of operations a second.
  init(_ row: String, rate operations: Int, _ cost: Cost) {
    self.init(row, cost.thousands(operations), processor: cost.microseconds(operations))
  }
}

/// A line that a child prints.
struct ChildLine: Codable {
  var measure: Measure?
  /// How the engine is configured.
  var settings: [String]?

  func show() {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    guard let data = try? encoder.encode(self) else { return }
    FileHandle.standardOutput.write(data + Data("\n".utf8))
  }
}
