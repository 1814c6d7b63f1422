/// Files that README names, for those who read the source.
enum ReadmeRules {
  /// All Swift files named between backticks.
  static func files() throws -> [String] {
    try Repository.lines(of: "README.md").flatMap(names)
  }

  /// The files of each column of the table of paths, from the call to the bytes.
  static func paths() throws -> [[String]] {
    let lines = try Repository.lines(of: "README.md")
    let table = lines.drop { !$0.hasPrefix("| | A put |") }.prefix { $0.hasPrefix("|") }
    var columns: [[String]] = [[], []]
    for line in table {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst(2)
      for (column, cell) in zip(columns.indices, cells) {
        columns[column] += names(in: String(cell))
      }
    }
    return columns
  }

  private static func names(in line: String) -> [String] {
    let parts = line.split(separator: "`", omittingEmptySubsequences: false)
    return zip(parts.indices, parts).filter { $0.0 % 2 == 1 && $0.1.hasSuffix(".swift") }.map {
      String($0.1)
    }
  }
}
