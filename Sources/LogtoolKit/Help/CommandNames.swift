internal import ArgumentParser

/// The names of the tool's commands.
enum CommandNames {
  /// The commands that the help shows.
  static var visible: [String] {
    Logtool.configuration.subcommands.map { $0.configuration }.filter { $0.shouldDisplay }
      .compactMap { $0.commandName }
  }

  private static var all: [String] {
    Logtool.configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
  }

  /// The command that the arguments name; nil when they name none.
  static func command(of arguments: [String]) -> String? {
    arguments.first.flatMap { all.contains($0) ? $0 : nil }
  }

  /// Makes sure that the first word is a command, also behind `help`. The parser would take it for
  /// an argument too many.
  static func check(_ arguments: [String]) throws(ToolError) {
    let words = arguments.first == "help" ? arguments.dropFirst() : arguments[...]
    guard let word = words.first, !word.hasPrefix("-"), !all.contains(word) else { return }
    let near = nearest(to: word)
    let hint = near.isEmpty ? "" : "; did you mean \(near.joined(separator: " or "))?"
    throw ToolError(.usage, HelpText.pointing("there is no command \(word)\(hint)", to: nil))
  }

  /// The commands that a word may have been meant for: those that begin with it, else those that
  /// take the fewest changes, at most one for every three letters.
  static func nearest(to word: String) -> [String] {
    let names = visible
    let longer = names.filter { word.count > 1 && $0.hasPrefix(word) }
    if !longer.isEmpty { return longer }
    let letters = Array(word.prefix(64))
    let distances = names.map { distance(letters, Array($0)) }
    guard let least = distances.min(), least <= max(1, letters.count / 3) else { return [] }
    return zip(names, distances).filter { $0.1 == least }.map(\.0)
  }

  /// How many letters have to be put in, left out, changed, or swapped with the next one (the
  /// restricted distance of Damerau).
  private static func distance(_ a: [Character], _ b: [Character]) -> Int {
    var rows = [Array(0...b.count)]
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var least = min(
          rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
          least = min(least, rows[i - 1][j - 1] + 1)
        }
        row.append(least)
      }
      rows.append(row)
    }
    return rows[a.count][b.count]
  }
}
