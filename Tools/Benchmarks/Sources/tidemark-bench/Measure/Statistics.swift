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

/// Does something again and again.
/// - Parameter body: gets the number of the turn; says whether what it found is right.
/// - Returns: the median time of a turn, in microseconds.
func timed(_ count: Int, _ body: (Int) throws -> Bool) throws -> Double {
  var times = Histogram()
  for number in 0..<count {
    let before = nanoseconds()
    let isRight = try body(number)
    times.add(nanoseconds() - before)
    guard isRight else { throw BenchError("what is measured answers wrongly") }
  }
  return Double(times.quantile(0.5)) / 1e3
}
