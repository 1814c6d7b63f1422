/// The arguments of the command line as text.
///
/// The system hands over bytes. What of them is no text would become another key, or another path,
/// if it were repaired; so it is refused.
enum ArgumentText {
  /// Options that are followed by a path.
  private static let pathOptions = ["--value-file", "--keys-from", "--to", "--into"]

  /// - Parameter arguments: without the program's name.
  static func decode(_ arguments: [[UInt8]]) throws(ToolError) -> [String] {
    var texts: [String] = []
    for argument in arguments {
      guard let text = String(validating: argument, as: UTF8.self) else {
        throw refusal(of: argument, behind: texts)
      }
      texts.append(text)
    }
    return texts
  }

  private static func refusal(of argument: [UInt8], behind earlier: [String]) -> ToolError {
    if let path = path(argument, behind: earlier) {
      return ToolError(
        .usage, "the path \(HumanText.escaped(path)) is not UTF-8; rename it or give another one")
    }
    // Keys and values are not shown: the talk travels further than data should.
    return ToolError(
      .usage,
      "argument \(earlier.count + 1) is not UTF-8; give a key in base64 with --key-base64, a value "
        + "with --value-file, and anything else as UTF-8")
  }

  /// The path that an argument is for sure; nil when it may be something else.
  private static func path(_ argument: [UInt8], behind earlier: [String]) -> [UInt8]? {
    let command = earlier.first ?? ""
    if let option = earlier.last, pathOptions.contains(option) {
      // scan's --to is a key.
      return option != "--to" || command == "replay" ? argument : nil
    }
    for option in pathOptions where argument.starts(with: (option + "=").utf8) {
      guard option != "--to" || command == "replay" else { return nil }
      return Array(argument.dropFirst(option.utf8.count + 1))
    }
    guard argument.first != UInt8(ascii: "-") else { return nil }
    // The store comes first, and some commands take nothing but paths.
    let isPath = earlier.count == 1 || ["import", "backup", "repair", "replay"].contains(command)
    return isPath ? argument : nil
  }
}
