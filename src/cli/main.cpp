#include "cli/commands.hpp"

int main(int count, char** arguments) {
  return stratplan::run_program({arguments, arguments + count});
}
