/// Bearer tokens from a file: one a line, with its rights.
///
/// ```
/// # token  databases  [label=X,Y] [prefix=P] [read|write]
/// 8f1c…    notes      label=user/17
/// 51e0…    *          read
/// ```
struct StaticTokens: Sendable {
  /// Shortest and longest token in bytes.
  static let lengths = 16...512
  /// Most tokens.
  static let most = 10_000

  private struct Row {
    let token: [UInt8]
    let grant: Grant
  }

  private var rows: [Row] = []

  var isEmpty: Bool { rows.isEmpty }

  /// Reads the lines of a file.
  /// - Throws: for an invalid line, with its number but without its text, which has a secret.
  init(_ text: String) throws(SettingsError) {
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      let words = line.split { $0 == " " || $0 == "\t" || $0 == "\r" }
      guard let token = words.first, !token.hasPrefix("#") else { continue }
      func wrong(_ reason: String) -> SettingsError {
        SettingsError("line \(index + 1) of the tokens: \(reason)")
      }
      guard Self.lengths.contains(token.utf8.count) else {
        throw wrong("a token has \(Self.lengths.lowerBound) to \(Self.lengths.upperBound) bytes")
      }
      guard rows.count < Self.most else { throw wrong("more than \(Self.most) tokens") }
      do {
        rows.append(Row(token: Array(token.utf8), grant: try Self.grant(words.dropFirst())))
      } catch { throw wrong(error.description) }
    }
  }

  private static func grant(_ words: ArraySlice<Substring>) throws(SettingsError) -> Grant {
    guard let databases = words.first, !databases.contains("=") else {
      throw SettingsError("the databases are missing behind the token; * is for all")
    }
    let names = databases.split(separator: ",").map(String.init)
    for name in names where name != "*" && DatabaseName(name) == nil {
      throw SettingsError("\(name) is no name of a database")
    }
    var labels: [String]?
    var prefixes: [String]?
    var canPush = true
    for word in words.dropFirst() {
      if word.hasPrefix("label=") {
        labels = (labels ?? []) + word.dropFirst(6).split(separator: ",").map(String.init)
      } else if word.hasPrefix("prefix=") {
        prefixes = (prefixes ?? []) + word.dropFirst(7).split(separator: ",").map(String.init)
      } else if word == "read" || word == "write" {
        canPush = word == "write"
      } else {
        throw SettingsError("\(word) is none of label=, prefix=, read and write")
      }
    }
    return Grant(databases: names, labels: labels, prefixes: prefixes, canPush: canPush)
  }

  /// The rights of a token. All tokens are compared, and every byte of each, so that the time does
  /// not show how much of a guess is right.
  func grant(for token: some Collection<UInt8>) -> (row: Int, grant: Grant)? {
    let given = Array(token)
    var found: Int?
    for (index, row) in rows.enumerated() where Self.areEqual(row.token, given) { found = index }
    return found.map { ($0, rows[$0].grant) }
  }

  static func areEqual(_ token: [UInt8], _ given: [UInt8]) -> Bool {
    var difference = token.count ^ given.count
    for index in token.indices {
      difference |= Int(token[index] ^ (index < given.count ? given[index] : 0))
    }
    return difference == 0
  }
}
