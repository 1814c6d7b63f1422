internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// Copies a database to another place by the calls of the protocol.
struct CopyCommand: RemoteCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Copy what a peer has to another: servers of any kind, or directories of stores.",
    discussion: """
      Examples:
        logtool copy --from https://a.example.org/n --to https://b.example.org/n
        logtool copy --from https://a.example.org/n --to /srv/tidemark/n

      What each key holds goes, with labels, times and attachments; history, deletes, policies \
      and leases do not. Both go on serving meanwhile. A copy that is made again takes what has \
      changed at the source since; what others have written at the target stays there. So copy, \
      let devices use the target, and copy again: devices compare once, and send what they have \
      not sent. Exit status 1 when the target refuses an entry, or the source lacks an \
      attachment; 69 when one of both cannot be reached: copy again.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var options: RemoteOptions

  @Option(
    name: .customLong("from"), help: "A URL, or the directory of a store.", completion: .directory)
  var source: RemoteTarget

  @Option(
    name: .customLong("to"), help: "A URL, or the directory of a store.", completion: .directory)
  var target: RemoteTarget

  @Option(
    name: .customLong("from-token-file"),
    help: ArgumentHelp(
      "A file with the token that the source's URL takes; else that of the target.",
      valueName: "file"),
    completion: .file())
  var sourceTokenFile: String?

  var remote: RemoteTarget? { source.isURL ? source : target }

  func run(_ console: Console) throws {
    console.stopGracefully()
    for place in [source, target] { try place.checkScheme() }
    if !source.isURL { try target.check(isNot: source.text) }
    var sourceOptions = options
    sourceOptions.tokenFile = sourceTokenFile ?? options.tokenFile
    sourceOptions.keyFile = nil
    let from = try sourceOptions.open(source, .write, console)
    defer { try? Waiting.run(console) { await from.close() } }
    let to = try options.open(target, .create, console)
    defer { try? Waiting.run(console) { await to.close() } }
    let done = Lock(0)
    var progress = Progress(console, "copying", unit: .entries, total: nil)
    let report = try Waiting.run(console) {
      progress.update(done.withLock { $0 })
    } _: {
      var copy = try await FeedCopy(from: from, to: to)
      return try await copy.run { report in
        done.withLock { $0 = report.copied + report.same + report.kept }
      }
    }
    progress.finish()
    try tell(report, console)
    if report.refused + report.missing > 0 { throw ToolError.silent(.failed) }
  }

  private func tell(_ report: FeedCopy.Report, _ console: Console) throws {
    guard console.settings.format == .text else {
      return try console.output.line(
        .object([
          .init("copied", .integer(report.copied)), .init("same", .integer(report.same)),
          .init("kept", .integer(report.kept)), .init("refused", .integer(report.refused)),
          .init("missing", .integer(report.missing)),
        ]))
    }
    var text = "copied \(HumanText.count(report.copied, "entry", "entries"))"
    if report.same > 0 { text += "; the target had \(HumanText.count(report.same)) already" }
    if report.kept > 0 { text += "; \(HumanText.count(report.kept)) stay as changed there" }
    console.say(text)
    if report.refused > 0 {
      console.warn(
        "the target refuses \(HumanText.count(report.refused, "entry", "entries")): "
          + report.refusal)
    }
    if report.missing > 0 {
      console.warn(
        "\(HumanText.count(report.missing, "entry", "entries")) not copied: the source lacks the "
          + "content of the attachment")
    }
  }
}
