/// Conditions on the system are written so that `Tools/check-apple`, which adds a module `Darwin`
/// to what Linux has, compiles each branch that Apple's systems would.
enum PlatformRules {
  private static let libraries: Set = ["Darwin", "Glibc", "Musl", "Android"]
  /// What Linux has and Apple's systems have not, in the place of which these have something else.
  private static let elsewhere = [
    "canImport(Glibc)", "canImport(Musl)", "canImport(Android)", "canImport(Foundation",
  ]

  /// Conditions whose answer with that module is not the one of Apple's systems: that ask for Linux
  /// or macOS by name, or for a library of other systems before they ask for Darwin.
  static func conditions(_ files: [SourceFile]) -> [String] {
    files.filter { $0.text.contains("#if") }.flatMap { file -> [String] in
      // Of each `#if` around a line, whether it or one around it has asked for Darwin by then.
      var asked: [Bool] = []
      var found: [String] = []
      let code = SwiftScanner.code(of: file.text)
      for (index, line) in code.split(separator: "\n", omittingEmptySubsequences: false)
        .enumerated()
      {
        let line = line.drop { $0 == " " }
        if line.hasPrefix("#if ") { asked.append(asked.last ?? false) }
        if line.hasPrefix("#endif") { _ = asked.popLast() }
        guard line.hasPrefix("#if ") || line.hasPrefix("#elseif "), let last = asked.last else {
          continue
        }
        let before = line.prefix(
          upTo: line.firstRange(of: "canImport(Darwin)")?.lowerBound ?? line.endIndex)
        let isLate = !last && elsewhere.contains { before.contains($0) }
        if isLate || line.contains("os(Linux)") || line.contains("os(macOS)") {
          found.append("\(file.path):\(index + 1): \(line)")
        }
        asked[asked.count - 1] = last || before.endIndex < line.endIndex
      }
      return found
    }
  }

  /// Files that import the C library of some systems and not of the others.
  static func libraries(_ files: [SourceFile]) -> [String] {
    files.filter { !$0.path.hasPrefix("Tools/AppleStubs/") }.compactMap { file in
      let missing = libraries.subtracting(file.imports)
      return missing.isEmpty || missing == libraries
        ? nil : "\(file.path): imports no \(missing.sorted().joined(separator: ", "))"
    }
  }
}
