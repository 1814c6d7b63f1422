/// Sizes, leftovers, and what must carry its reasons.
enum StyleRules {
  static let fileLines = 400
  static let functionLines = 60
  static let columns = 100

  static func longFiles(_ files: [SourceFile]) -> [String] {
    files.compactMap { file in
      let count = file.text.split(separator: "\n", omittingEmptySubsequences: false).count - 1
      return count > fileLines ? "\(file.path): \(count) lines" : nil
    }
  }

  static func longLines(_ files: [SourceFile]) -> [String] {
    files.flatMap { file in
      file.lines.enumerated().compactMap { index, line in
        line.unicodeScalars.count > columns
          ? "\(file.path):\(index + 1): \(line.unicodeScalars.count) columns" : nil
      }
    }
  }

  static func longFunctions(_ files: [SourceFile]) -> [String] {
    files.flatMap { file -> [String] in
      functions(file).filter { $0.lines > functionLines }.map {
        "\(file.path):\($0.start): a function of \($0.lines) lines"
      }
    }
  }

  /// Where functions begin, counted from 1, and how many lines they take, signature included.
  static func functions(_ file: SourceFile) -> [(start: Int, lines: Int)] {
    let others: Set = ["var", "let", "case", "struct", "class", "enum", "associatedtype", "}"]
    var result: [(start: Int, lines: Int)] = []
    var open: [(start: Int, depth: Int)] = []
    /// A function whose body is still to come, and the parentheses open since.
    var waiting: (start: Int, parentheses: Int)?
    for token in file.tokens {
      if beginsFunction(token) {
        waiting = (token.line, 0)
      } else if let current = waiting {
        if token.text == "{", current.parentheses == 0 {
          open.append((current.start, token.depth))
          waiting = nil
        } else if others.contains(token.text), current.parentheses == 0 {
          // It was the requirement of a protocol.
          waiting = nil
        } else if token.text == "(" {
          waiting?.parentheses += 1
        } else if token.text == ")" {
          waiting?.parentheses -= 1
        }
      }
      if token.text == "}", let last = open.last, last.depth == token.depth {
        result.append((last.start, token.line + 1 - last.start))
        open.removeLast()
      }
    }
    return result
  }

  private static func beginsFunction(_ token: Token) -> Bool {
    ["func", "init", "deinit", "subscript"].contains(token.text)
      && token.before != "." && token.before != "`"
  }

  static func leftovers(_ files: [SourceFile]) -> [String] {
    // Put together here so that this file does not refuse itself.
    let words = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]
    return files.flatMap { file in
      file.lines.enumerated().compactMap { index, line in
        Token.tokens(of: String(line)).first { words.contains($0.text) }.map {
          "\(file.path):\(index + 1): \($0.text)"
        }
      }
    }
  }

  /// A limit that guards a test against hanging must not measure how busy the machine is.
  static let timeLimitMinutes = 20

  static func shortTimeLimits(_ files: [SourceFile]) -> [String] {
    files.filter { $0.text.contains("timeLimit(") }.flatMap { file in
      SwiftScanner.code(of: file.text).split(separator: "\n", omittingEmptySubsequences: false)
        .enumerated().compactMap { index, line in
          guard let limit = line.firstMatch(of: /timeLimit\(\.minutes\(([0-9]+)\)/),
            let minutes = Int(limit.1), minutes < timeLimitMinutes
          else { return nil }
          return "\(file.path):\(index + 1): a time limit of \(minutes) minutes"
        }
    }
  }

  /// Files with unsafe constructs or calls into C.
  static func unsafeFiles(_ files: [SourceFile]) -> [SourceFile] {
    let modules: Set = ["Glibc", "Musl", "Darwin", "Android"]
    return files.filter { file in
      let isUnsafe = file.tokens.contains {
        $0.text == "unsafe" || $0.text.hasPrefix("Unsafe")
          || ($0.before == "@" && ["unchecked", "safe"].contains($0.text))
      }
      // Modules of C code are named with a C before another capital.
      return isUnsafe
        || file.imports.contains {
          modules.contains($0) || ($0.hasPrefix("C") && $0.dropFirst().first?.isUppercase == true)
        }
    }
  }

  static func withoutReason(_ files: [SourceFile]) -> [String] {
    unsafeFiles(files).filter { !$0.text.contains("// SAFETY:") }.map(\.path)
  }
}
