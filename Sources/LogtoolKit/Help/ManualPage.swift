/// The tool's page of the manual, in the macros of man(7), made from what the help is made of.
struct ManualPage {
  private var lines: [String] = []

  static func text() throws -> String {
    var page = ManualPage()
    page.append(try HelpTree())
    return page.lines.joined(separator: "\n") + "\n"
  }

  private mutating func append(_ tree: HelpTree) {
    let name = tree.root.name
    lines.append(
      ".TH \(name.uppercased()) 1 \"\" \"\(name) \(ToolVersion.number)\" \"Tidemark\"")
    section("NAME")
    lines.append("\(name) \\- \(Self.escaped(tree.root.abstract))")
    section("SYNOPSIS")
    lines.append("\\fB\(name)\\fR \\fIcommand\\fR [\\fIoption\\fR ...] [\\fIargument\\fR ...]")
    section("DESCRIPTION")
    append(paragraphs: tree.root.discussion)
    // `help` has none of them.
    let all = tree.commands.filter { $0.name != "help" }
    let shared = all.dropFirst().reduce(Set(all.first?.arguments ?? [])) {
      $0.intersection($1.arguments)
    }
    section("OPTIONS OF EVERY COMMAND")
    for argument in all.first?.arguments ?? [] where shared.contains(argument) {
      append(argument)
    }
    section("COMMANDS")
    for command in tree.commands {
      lines.append(".SS \(name) \(command.name)")
      lines.append(Self.synopsis(of: command, tool: name))
      lines.append(".PP")
      lines.append(Self.escaped(command.abstract))
      append(paragraphs: command.discussion)
      let own = command.arguments.filter { !shared.contains($0) }
      for argument in own where argument.names.isEmpty { append(argument) }
      for argument in own where !argument.names.isEmpty { append(argument) }
    }
  }

  private mutating func section(_ title: String) { lines.append(".SH \(title)") }

  /// Text as the help has it: lines are paragraphs, and what is indented stays as it is.
  private mutating func append(paragraphs text: String) {
    var isIndented = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: true) {
      let isExample = line.hasPrefix(" ")
      if isExample != isIndented { lines += isExample ? [".RS 4", ".nf"] : [".fi", ".RE"] }
      // Not right behind a heading, where it would say nothing.
      if !isExample, lines.last?.hasPrefix(".S") != true { lines.append(".PP") }
      isIndented = isExample
      lines.append(Self.escaped(isExample ? line.drop { $0 == " " } : line))
    }
    if isIndented { lines += [".fi", ".RE"] }
  }

  private mutating func append(_ argument: HelpTree.Argument) {
    lines.append(".TP")
    lines.append(Self.form(of: argument, names: argument.names))
    var remarks: [String] = []
    if !argument.values.isEmpty {
      remarks.append("values: " + argument.values.joined(separator: ", "))
    }
    if !argument.defaultValue.isEmpty { remarks.append("default: " + argument.defaultValue) }
    let remark = remarks.isEmpty ? "" : " (\(remarks.joined(separator: "; ")))"
    lines.append(Self.escaped(argument.abstract + remark))
  }

  private static func synopsis(of command: HelpTree.Command, tool: String) -> String {
    var parts = ["\\fB\(tool) \(command.name)\\fR", "[\\fIoption\\fR ...]"]
    for argument in command.arguments where argument.names.isEmpty || !argument.isOptional {
      var form = form(of: argument, names: Array(argument.names.prefix(1)))
      if argument.isRepeating { form += " ..." }
      parts.append(argument.isOptional ? "[\(form)]" : form)
    }
    return parts.joined(separator: " ")
  }

  private static func form(of argument: HelpTree.Argument, names: [String]) -> String {
    let bold = names.map { "\\fB\(escaped($0))\\fR" }.joined(separator: ", ")
    guard argument.takesValue else { return bold }
    return bold + (names.isEmpty ? "" : " ") + "\\fI\(escaped(argument.valueName))\\fR"
  }

  /// Text in which nothing is taken for a request.
  private static func escaped(_ text: some StringProtocol) -> String {
    var result = text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" : ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\e"
      case "-": result += "\\-"
      case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
      default:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        result += "\\[u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "]"
      }
    }
    return result
  }
}
