import ExamplePrograms

@main
enum Packages {
  static func main() async { await PackagesProgram.main() }
}
