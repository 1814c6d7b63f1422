import ExamplePrograms

@main
enum Ledger {
  static func main() async { await LedgerProgram.main() }
}
