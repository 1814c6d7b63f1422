/// Figures of several runs: the middle one counts, the others say how much it is worth.
struct Statistics: Codable {
  var median: Double
  var smallest: Double
  var largest: Double
  var runs: Int

  init(_ values: [Double]) {
    median = Self.median(values)
    smallest = values.min() ?? 0
    largest = values.max() ?? 0
    runs = values.count
  }

  static func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return 0 }
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }
}
